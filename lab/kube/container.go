// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind tells how a container ends.
type kind int

const (
	serves kind = iota // runs until it is stopped
	works              // ends by itself, with success
	setsUp             // an init container: ends by itself, and soon
)

// role returns the kind of an init container: a sidecar serves.
func role(policy *corev1.ContainerRestartPolicy) kind {
	if policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
		return serves
	}

	return setsUp
}

// phase tells where a container is in its life.
type phase int

const (
	waiting phase = iota
	pulling
	starting
	running
	exited
)

// lookAgain is between looks at a program that runs, in real time.
const lookAgain = 100 * time.Millisecond

// container plays one container of a pod.
type container struct {
	spec  *corev1.Container
	kind  kind
	phase phase
	due   time.Time // when the phase may end

	reason, message string // why it waits, or how it exited
	ready           bool
	readyAt         time.Time
	started, ended  metav1.Time
	exitCode        int32
	restarts        int32
	last            *corev1.ContainerStateTerminated // how it ended before it started again

	outcome chan error // what its program returns; nil while none runs
}

// newContainer makes a container that has yet to start. One that ran in an earlier boot counts a
// restart; one of this boot goes on where it is.
func (k *kubelet) newContainer(spec *corev1.Container, as kind, known []corev1.ContainerStatus) *container {
	c := &container{spec: spec, kind: as}

	for _, status := range known {
		if status.Name != spec.Name {
			continue
		}
		c.restarts, c.last = status.RestartCount, status.LastTerminationState.Terminated
		if ran := status.State.Running; ran != nil && k.resumed {
			k.begin(c, ran.StartedAt.Time)
			c.ready = status.Ready
		} else if ran != nil {
			c.restarts++
		}
		if end := status.State.Terminated; end != nil && k.resumed {
			c.exit(end.FinishedAt.Time, end.ExitCode, end.Reason, end.Message)
			c.started = end.StartedAt
		}
	}

	return c
}

// step moves a container on and tells after which time to look again, 0 when nothing is awaited.
func (k *kubelet) step(ctx context.Context, pod *corev1.Pod, s *podState, c *container) time.Duration {
	now := k.now()

	if c.phase == waiting {
		if wait := k.prepare(ctx, pod, s, c, now); wait > 0 {
			return wait
		}
	}
	if c.phase == pulling && !now.Before(c.due) {
		k.pulled[c.spec.Image] = true
		k.tell(pod, "Pulled", "Successfully pulled image %q", c.spec.Image)
		c.phase, c.due = starting, now.Add(k.pace.start)
	}
	if c.phase == starting && !now.Before(c.due) {
		k.begin(c, now)
		k.tell(pod, "Created", "Container created")
		k.tell(pod, "Started", "Container started")
	}
	if c.phase == running {
		c.ready = !now.Before(c.readyAt)
		if p := k.program(c); p != nil {
			k.pursue(ctx, pod, c, p, now)
		} else if c.kind != serves && !now.Before(c.due) {
			c.complete(now)
		}
	}
	if c.outcome != nil {
		return lookAgain
	}

	return c.next(now)
}

// prepare checks what a container needs to be created. It returns how long to wait for it, or 0.
func (k *kubelet) prepare(
	ctx context.Context, pod *corev1.Pod, s *podState, c *container, now time.Time,
) time.Duration {
	if now.Before(c.due) {
		return c.due.Sub(now)
	}

	if err := k.imageError(c.spec); err != nil {
		// The kubelet shows the error of the pull and the wait for the next one in turn.
		back := fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", c.spec.Image, err)
		if c.reason == "ErrImagePull" {
			c.reason, c.message = "ImagePullBackOff", back
		} else {
			c.reason, c.message = "ErrImagePull", err.Error()
		}
		k.warn(pod, s, "Failed", fmt.Sprintf("Failed to pull image %q: %s", c.spec.Image, err))
		c.due = now.Add(k.pace.retry)

		return k.pace.retry
	}
	if missing := k.missingEnvironment(ctx, pod.Namespace, c.spec); missing != "" {
		c.reason, c.message = "CreateContainerConfigError", missing
		k.warn(pod, s, "Failed", "Error: "+missing)
		c.due = now.Add(k.pace.retry)

		return k.pace.retry
	}

	if c.reason == crashLoop {
		c.restarts++
	}
	c.reason, c.message = "", ""
	c.phase, c.due = starting, now.Add(k.pace.start)
	if k.pulled[c.spec.Image] {
		k.tell(pod, "Pulled", "Container image %q already present on machine", c.spec.Image)
	} else {
		k.tell(pod, "Pulling", "Pulling image %q", c.spec.Image)
		c.phase, c.due = pulling, now.Add(k.pace.pull)
	}

	return 0
}

// tell records what becomes of a pod.
func (k *kubelet) tell(pod *corev1.Pod, reason, format string, args ...any) {
	k.events.Eventf(pod, corev1.EventTypeNormal, reason, format, args...)
}

func (k *kubelet) imageError(c *corev1.Container) error {
	if k.images == nil || k.pulled[c.Image] && c.ImagePullPolicy != corev1.PullAlways {
		return nil
	}

	return k.images(c.Image)
}

// begin starts the container; its probes succeed the first time they are asked.
func (k *kubelet) begin(c *container, now time.Time) {
	c.phase, c.started = running, metav1.NewTime(now)
	c.readyAt = now
	for _, probe := range []*corev1.Probe{c.spec.StartupProbe, c.spec.ReadinessProbe} {
		if probe != nil {
			delay := time.Duration(probe.InitialDelaySeconds) * time.Second
			c.readyAt = c.readyAt.Add(k.pace.scale(delay))
		}
	}

	switch c.kind {
	case works:
		c.due = now.Add(k.pace.work)
	case setsUp:
		c.due = now.Add(k.pace.setup)
	case serves:
	}
}

func (c *container) next(now time.Time) time.Duration {
	switch c.phase {
	case pulling, starting:
		return until(c.due, now)
	case running:
		if !c.ready {
			return until(c.readyAt, now)
		}
		if c.kind != serves {
			return until(c.due, now)
		}
	case waiting:
		if c.reason == crashLoop {
			return until(c.due, now)
		}
	case exited:
	}

	return 0
}

func until(t, now time.Time) time.Duration { return max(t.Sub(now), time.Millisecond) }

// complete ends a container with success; one that never ran or has ended stays as it is.
func (c *container) complete(now time.Time) {
	if c.phase == running {
		c.exit(now, 0, "Completed", "")
	}
}

// fail ends a container that has not ended yet.
func (c *container) fail(now time.Time, code int32, reason, message string) {
	if c.phase != exited {
		c.exit(now, code, reason, message)
	}
}

func (c *container) exit(now time.Time, code int32, reason, message string) {
	c.phase, c.ready, c.ended = exited, false, metav1.NewTime(now)
	c.exitCode, c.reason, c.message = code, reason, message
	if c.started.IsZero() {
		c.started = c.ended
	}
}

// passed reports whether an init container lets the next one start.
func (c *container) passed() bool {
	if c.kind == serves {
		return c.phase == running && c.ready || c.phase == exited
	}

	return c.phase == exited && c.exitCode == 0
}

func runningAll(list []*container) bool {
	for _, c := range list {
		if c.phase != running {
			return false
		}
	}

	return true
}

func finishedAll(list []*container) bool {
	for _, c := range list {
		if c.phase != exited {
			return false
		}
	}

	return true
}

// started reports whether anything of a pod runs that would have to be stopped.
func started(s *podState) bool {
	for _, c := range s.all() {
		if c.phase == running {
			return true
		}
	}

	return false
}
