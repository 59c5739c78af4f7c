// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Program does the work of containers that end by themselves. Those of which no program is known only
// seem to run.
type Program interface {
	// Does reports whether a container's work is the program's.
	Does(c *corev1.Container) bool
	// Run does the work. An error is the last that the container prints before it exits with code 1.
	Run(ctx context.Context, p Process) error
}

// Process describes a container to the program that plays it.
type Process struct {
	// Args are the container's command and arguments.
	Args []string
	// Files are those of the ConfigMaps and Secrets that it mounts, by path.
	Files map[string][]byte
	// API reaches the API server as the pod's service account.
	API *rest.Config
}

const (
	// crashBackoff is the first pause before a failed container starts again; it doubles up to
	// crashBackoffMost.
	crashBackoff     = 10 * time.Second
	crashBackoffMost = 5 * time.Minute
	// messageTail is how much of a failed container's log its status shows, in bytes.
	messageTail = 2048
)

// program returns what does the container's work, nil when it only seems to run.
func (k *kubelet) program(c *container) Program {
	if c.kind != works {
		return nil
	}
	if i := slices.IndexFunc(k.programs, func(p Program) bool { return p.Does(c.spec) }); i >= 0 {
		return k.programs[i]
	}

	return nil
}

// pursue starts the container's program, or looks whether it has ended.
func (k *kubelet) pursue(ctx context.Context, pod *corev1.Pod, c *container, p Program, now time.Time) {
	if c.outcome == nil {
		c.outcome = make(chan error, 1)
		go func(outcome chan<- error) {
			ctx, cancel := outliveTakeover(ctx)
			defer cancel()
			outcome <- k.perform(ctx, pod, c.spec, p)
		}(c.outcome)

		return
	}
	select {
	case err := <-c.outcome:
		c.outcome = nil
		if err == nil {
			c.complete(now)
		} else {
			k.crash(pod, c, now, err)
		}
	default:
	}
}

// outliveTakeover returns a context for what another kubelet of the same node goes on with.
func outliveTakeover(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(context.Cause(ctx), ErrReplaced) {
			cancel()
		}
	})

	return own, func() { stop(); cancel() }
}

func (k *kubelet) perform(ctx context.Context, pod *corev1.Pod, c *corev1.Container, p Program) error {
	files, err := k.files(ctx, pod, c)
	if err != nil {
		return err
	}
	token, err := k.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
			},
		}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("fetching the token of service account %s: %w", pod.Spec.ServiceAccountName, err)
	}
	api := rest.AnonymousClientConfig(k.api)
	api.Proxy, api.BearerToken = k.api.Proxy, token.Status.Token
	api.QPS, api.Burst = k.api.QPS, k.api.Burst

	return p.Run(ctx, Process{Args: slices.Concat(c.Command, c.Args), Files: files, API: api})
}

// files returns those that the container mounts from ConfigMaps and Secrets.
func (k *kubelet) files(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, mount := range c.VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			continue // the API server refuses such a pod
		}
		content, err := k.contentOf(ctx, pod.Namespace, pod.Spec.Volumes[i].VolumeSource)
		if err != nil {
			return nil, fmt.Errorf("reading volume %s: %w", mount.Name, err)
		}
		for name, data := range content {
			switch {
			case mount.SubPath == "":
				files[path.Join(mount.MountPath, name)] = data
			case mount.SubPath == name:
				files[mount.MountPath] = data
			}
		}
	}

	return files, nil
}

// contentOf returns the files of a volume, by their name in it.
func (k *kubelet) contentOf(ctx context.Context, namespace string, source corev1.VolumeSource) (map[string][]byte, error) {
	content, items := map[string][]byte{}, []corev1.KeyToPath(nil)
	switch {
	case source.ConfigMap != nil:
		found, err := k.admin.CoreV1().ConfigMaps(namespace).Get(ctx, source.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for name, text := range found.Data {
			content[name] = []byte(text)
		}
		items = source.ConfigMap.Items
	case source.Secret != nil:
		found, err := k.admin.CoreV1().Secrets(namespace).Get(ctx, source.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		content, items = found.Data, source.Secret.Items
	}
	if items == nil {
		return content, nil
	}
	chosen := map[string][]byte{}
	for _, item := range items {
		chosen[item.Path] = content[item.Key]
	}

	return chosen, nil
}

// crash ends a container whose program has failed, and starts it again later where the pod says so.
func (k *kubelet) crash(pod *corev1.Pod, c *container, now time.Time, err error) {
	message := ""
	if c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		message = err.Error()
		message = strings.ToValidUTF8(message[max(0, len(message)-messageTail):], "")
	}
	c.fail(now, 1, "Error", message)
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		return
	}
	ended := c.terminated(pod)
	pause := min(crashBackoff<<min(c.restarts, 10), crashBackoffMost)
	*c = container{
		spec: c.spec, kind: c.kind, restarts: c.restarts, last: &ended, phase: waiting, due: now.Add(k.pace.scale(pause)),
		reason: crashLoop, message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			pause, c.spec.Name, pod.Name, pod.Namespace, pod.UID),
	}
}

// crashLoop is why a failed container waits.
const crashLoop = "CrashLoopBackOff"
