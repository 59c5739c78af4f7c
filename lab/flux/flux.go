// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package flux

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	sourceController    = "source-controller"
	kustomizeController = "kustomize-controller"
	// appLabel is what Flux's pods say they are.
	appLabel = "app"
)

// Config describes one cluster's Flux.
type Config struct {
	// Admin reaches the cluster's API server on loopback as an administrator. Required.
	Admin *rest.Config
	// Dir keeps artifacts, credentials and logs of this cluster's controllers; it is created. Required.
	Dir string
	// Programs is the directory of the controllers' programs. Required.
	Programs string
	// Environment is what the programs get besides what is theirs: the way into the site.
	Environment []string
	// Supervisor is put before each command line; it ends the program when its standard input ends, so
	// that none outlives the lab. Empty: the program runs by itself.
	Supervisor []string
	// Log gets the starts and ends. Required.
	Log *slog.Logger
}

// There reports whether the directory has the controllers' programs.
func There(programs string) bool {
	for _, name := range []string{sourceController, kustomizeController} {
		if info, err := os.Stat(filepath.Join(programs, name)); err != nil || info.IsDir() {
			return false
		}
	}

	return true
}

// watcher runs the controllers of one cluster.
type watcher struct {
	Config

	client kubernetes.Interface

	mu      sync.Mutex
	running map[types.UID]*controller
	done    bool
}

// Run runs the controllers whose pods run, until ctx ends and all of them have.
func Run(ctx context.Context, c Config) error {
	client, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		return fmt.Errorf("running Flux: %w", err)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("running Flux: %w", err)
	}
	w := &watcher{Config: c, client: client, running: map[types.UID]*controller{}}

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = appLabel + " in (" + sourceController + "," + kustomizeController + ")"
		}))
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { w.look(ctx, pod) },
		UpdateFunc: func(_, pod any) { w.look(ctx, pod) },
		DeleteFunc: w.gone,
	})
	if err != nil {
		return fmt.Errorf("running Flux: %w", err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	w.stopAll()

	return nil
}

// look starts the controller of a pod that has come to run, and ends the one of a pod that goes.
func (w *watcher) look(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()

	have := w.running[pod.UID]
	wanted := pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && !w.done
	switch {
	case wanted && have == nil:
		w.running[pod.UID] = w.start(ctx, pod)
	case !wanted && have != nil:
		delete(w.running, pod.UID)
		have.stop()
	}
}

// gone ends the controller of a pod that is no more.
func (w *watcher) gone(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()

	if have := w.running[pod.UID]; have != nil {
		delete(w.running, pod.UID)
		have.stop()
	}
}

func (w *watcher) stopAll() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.done = true
	for _, c := range w.running {
		c.stop()
	}
}
