// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
)

const (
	// lockName names the Lease, in the namespace of Kubernetes itself.
	lockName = "talos-proxmox"
	// lockRenewal is how often a run renews its Lease, and lockTimeout when one that is not renewed is stale.
	lockRenewal = 5 * time.Second
	lockTimeout = 4 * lockRenewal
)

// Lock keeps two runs from taking nodes of one cluster down at the same time: each has a gate of its own, and a
// backend's lock can be broken while the run that holds it goes on. It is a Lease in the cluster itself.
type Lock struct {
	open   func(context.Context) (cluster.Access, error)
	holder string
	// renewal and timeout are shorter in tests.
	renewal, timeout time.Duration

	mu      sync.Mutex
	renewed context.CancelFunc
}

// NewLock returns the lock of the cluster that open opens, for a run that calls itself so.
func NewLock(run string, open func(context.Context) (cluster.Access, error)) *Lock {
	return &Lock{open: open, holder: holderOf(run), renewal: lockRenewal, timeout: lockTimeout}
}

// Locked reports that another run is changing the cluster.
type Locked struct {
	// Holder is the other run.
	Holder string
}

// Error names the other run.
func (e *Locked) Error() string {
	return fmt.Sprintf("another run is changing this cluster: %s\n  wait until it ends; when it was killed, its lock expires within %s "+
		"(kubectl -n %s get lease %s)", e.Holder, lockTimeout, health.SystemNamespace, lockName)
}

// acquire takes the Lease unless this run has it. A Lease of another run is watched: when it is renewed the other
// run lives, and acquire fails; else it is stale and is taken over.
func (l *Lock) acquire(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed != nil {
		return nil
	}
	var seen *coordinationv1.Lease
	var since time.Time
	var last error
	err := cluster.Poll(ctx, l.renewal/2, func(ctx context.Context) (bool, error) {
		api, err := l.api(ctx)
		if err != nil {
			cluster.Remember(ctx, &last, err)

			return false, nil
		}
		other, err := l.take(ctx, api, seen != nil && time.Since(since) > l.timeout)
		switch {
		case err != nil:
			cluster.Remember(ctx, &last, err)

			return false, nil
		case other == nil:
			return true, nil
		case seen == nil:
			seen, since = other, time.Now()
		case !seen.Spec.RenewTime.Equal(other.Spec.RenewTime):
			return false, &Locked{Holder: holderIn(other)}
		}
		last = &Locked{Holder: holderIn(other)}

		return false, nil
	})
	if err != nil {
		if last != nil && errors.Is(err, ctx.Err()) {
			err = errors.Join(last, err)
		}

		return fmt.Errorf("taking the cluster's lock: %w", err)
	}
	renewing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.renewed = cancel
	go l.renew(renewing)

	return nil
}

// take writes the Lease where there is none, it is this run's, or its holder is gone. Else it returns the Lease.
func (l *Lock) take(ctx context.Context, api kubernetes.Interface, stale bool) (*coordinationv1.Lease, error) {
	leases := api.CoordinationV1().Leases(health.SystemNamespace)
	found, err := leases.Get(ctx, lockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lockName}}
		l.sign(lease)
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})

		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if holder := holderIn(found); holder != l.holder && holder != "" && !stale && !ended(holder) {
		return found, nil
	}
	l.sign(found)
	_, err = leases.Update(ctx, found, metav1.UpdateOptions{}) // fails when somebody else was faster

	return nil, err
}

func (l *Lock) sign(lease *coordinationv1.Lease) {
	now := metav1.NowMicro()
	seconds := int32(l.timeout / time.Second)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &l.holder, &seconds, &now
}

// renew keeps the Lease until the context ends. While the only API server restarts nobody else gets it either.
func (l *Lock) renew(ctx context.Context) {
	every(ctx, l.renewal, func() {
		calling, cancel := context.WithTimeout(ctx, l.renewal)
		if api, err := l.api(calling); err == nil {
			_, _ = l.take(calling, api, false) // the next one may succeed
		}
		cancel()
	})
}

// release deletes the Lease; one that cannot be deleted becomes stale.
func (l *Lock) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed == nil {
		return
	}
	l.renewed()
	l.renewed = nil
	ctx, cancel := context.WithTimeout(context.Background(), l.renewal)
	defer cancel()
	api, err := l.api(ctx)
	if err != nil {
		return
	}
	leases := api.CoordinationV1().Leases(health.SystemNamespace)
	if found, err := leases.Get(ctx, lockName, metav1.GetOptions{}); err == nil && holderIn(found) == l.holder {
		_ = leases.Delete(ctx, lockName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &found.UID}})
	}
}

func (l *Lock) api(ctx context.Context) (kubernetes.Interface, error) {
	access, err := l.open(ctx)
	if err != nil {
		return nil, err
	}

	return access.Kubernetes(ctx)
}

func holderIn(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}

	return *lease.Spec.HolderIdentity
}

// holderOf describes this process: the run, the machine, and what tells the process from all others.
func holderOf(run string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}

	return fmt.Sprintf("%s on %s, process %d (%s/%s)", run, host, os.Getpid(), processSpace(), rand.Text()[:8])
}

// ended reports whether a holder was a process of this machine that is no more: its lock is stale at once.
func ended(holder string) bool {
	_, rest, ok := strings.Cut(holder, ", process ")
	if !ok {
		return false
	}
	var pid int
	var space string
	if _, err := fmt.Sscanf(strings.ReplaceAll(rest, "/", " "), "%d (%s", &pid, &space); err != nil {
		return false
	}

	if space == "" || space != processSpace() {
		return false
	}
	process, err := os.FindProcess(pid)

	return err == nil && errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// processSpace identifies the boot and the namespace in which process ids are unique; empty where that is unknown.
func processSpace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}

	return strings.TrimSpace(string(boot)) + strings.Trim(namespace, "pid:")
}
