// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"cmp"
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// kubelet stands in for the kubelet of one node: it registers the Node, keeps it alive, and moves
// the pods bound to it through their lives by the rules of a kubelet. It runs nothing but its programs.
type kubelet struct {
	spec   NodeSpec
	client kubernetes.Interface // as the node
	admin  kubernetes.Interface // as Talos
	pace   pace
	images func(ref string) error
	now    func() time.Time

	programs []Program
	api      *rest.Config // where programs find the API server
	// adminConfig may act as somebody who joins.
	adminConfig *rest.Config

	pods   listers.PodLister
	queue  workqueue.TypedRateLimitingInterface[string]
	nudge  chan struct{} // asks for a node status at once
	events record.EventRecorder

	// Of the registration, which comes before the loops.
	found   bool
	asked   bool // for a certificate
	resumed bool // the Node showed this boot when the kubelet started

	// Of the lease's loop alone: the lease as it wrote it last, nil where that is not known.
	lease *coordinationv1.Lease

	// Of the pods' worker alone.
	states map[types.UID]*podState
	pulled map[string]bool

	mu       sync.Mutex // guards what the node loop and the worker share
	bootID   string
	network  bool // a CNI has been set up
	podCIDRs []string
}

func newKubelet(
	n NodeSpec, client, admin kubernetes.Interface, p pace, images func(string) error, now func() time.Time,
) *kubelet {
	return &kubelet{
		spec: n, client: client, admin: admin, pace: p, images: images, now: now,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, 5*time.Second)),
		nudge:  make(chan struct{}, 1),
		states: map[types.UID]*podState{},
		pulled: map[string]bool{},
		bootID: cmp.Or(n.BootID, string(uuid.NewUUID())),
	}
}

// adopt takes over what a former kubelet of the same boot knew.
func (k *kubelet) adopt(former *kubelet) {
	k.states, k.pulled = former.states, former.pulled
	k.network, k.podCIDRs = former.network, former.podCIDRs
	if k.spec.BootID == "" {
		k.bootID = former.bootID
	}
}

// run runs the kubelet until ctx ends, or fails when the API server refuses the Node for good.
func (k *kubelet) run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: k.client.CoreV1().Events("")})
	k.events = broadcaster.NewRecorder(scheme(), corev1.EventSource{Component: "kubelet", Host: k.spec.Name})

	if err := k.awaitRegistration(ctx); err != nil {
		return err
	}

	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", k.spec.Name).String()
		}))
	pods := factory.Core().V1().Pods()
	k.pods = pods.Lister()
	_, _ = pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    k.enqueue,
		UpdateFunc: func(_, pod any) { k.enqueue(pod) },
		DeleteFunc: k.enqueue,
	})
	factory.Start(ctx.Done())
	defer factory.Shutdown()

	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { k.keepLease(ctx) })
	loops.Go(func() { k.keepStatus(ctx) })
	loops.Go(func() { k.keepStaticPods(ctx, pods.Informer().HasSynced) })
	loops.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
			k.work(ctx)
		}
	})

	<-ctx.Done()
	k.queue.ShutDown()

	return nil
}

func (k *kubelet) enqueue(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		k.queue.Add(key)
	}
}

func (k *kubelet) work(ctx context.Context) {
	for {
		key, quit := k.queue.Get()
		if quit {
			return
		}

		after, err := k.syncPod(ctx, key)
		switch {
		case err != nil:
			k.queue.AddRateLimited(key)
		case after > 0:
			k.queue.Forget(key)
			k.queue.AddAfter(key, after)
		default:
			k.queue.Forget(key)
		}
		k.queue.Done(key)
	}
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = corev1.AddToScheme(s) // fails only for a type registered twice

	return s
}

// setNetwork notes that a CNI has been set up, and wakes what waits for it.
func (k *kubelet) setNetwork() {
	k.mu.Lock()
	known := k.network
	k.network = true
	k.mu.Unlock()

	if known {
		return
	}
	k.wake()
	all, _ := k.pods.List(everything()) // a lister of a cache does not fail
	for _, pod := range all {
		k.enqueue(pod)
	}
}

// wake asks for a node status at once.
func (k *kubelet) wake() {
	select {
	case k.nudge <- struct{}{}:
	default:
	}
}

func (k *kubelet) networkReady() bool {
	k.mu.Lock()
	defer k.mu.Unlock()

	return k.network
}
