// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/health"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

const (
	// trialLimit bounds the wait until a node is healthy with what it tries, restarts of the control plane's pods
	// included.
	trialLimit = 90 * time.Second
	// restartLimit bounds the wait until the kubelet restarts the control plane's pods with the configuration: it
	// looks for other ones every 20 seconds.
	restartLimit = 45 * time.Second
)

// restarting matches differences with which the control plane's pods restart; certificates are read anew without.
var restarting = regexp.MustCompile(`(?i)apiserver|controllermanager|scheduler|admission|auditpolicy|authorization`)

// harmless lists where configurations differ without an effect on what runs on the node.
var harmless = []string{
	"machine.nodeLabels", "machine.nodeAnnotations", "machine.install", "cluster.extraManifests",
	"cluster.extraManifestHeaders", "cluster.inlineManifests",
}

// trial has a node try a configuration that it applies without a reboot. One that cuts the node off, or that the
// control plane does not start with, is taken back by the node itself, before another node gets it.
type trial struct {
	checker HealthChecker
	gate    *Gate
	member  cluster.Member
}

func (t trial) run(ctx context.Context, api cluster.Talos, configuration []byte) error {
	needed, restarts := t.effects(ctx, api, configuration)
	if !needed {
		return nil
	}
	if found := t.check(ctx); found != nil {
		if earlier, changed := t.gate.lastTried(); changed {
			if err := (trial{checker: t.checker, gate: t.gate, member: earlier}).settle(ctx, nil); err != nil {
				return fmt.Errorf("node %s is not healthy since it got its configuration: %w\n  no more nodes are changed: correct the "+
					"edit and run `pulumi up` again", earlier, err)
			}
		}
		// The configuration may be what repairs it, and nothing would tell whether it does harm.
		t.checker.Report(fmt.Sprintf("%s is not healthy, so its configuration is applied without a trial: %v", t.member.Name, found))

		return nil
	}
	t.checker.Report(t.member.Name + " tries its configuration")
	var before map[string]string
	if restarts && t.member.ControlPlane {
		before, _ = t.podHashes(ctx) // without them nobody can tell what restarts
	}
	calling, cancel := context.WithTimeout(ctx, t.checker.Poll.Call)
	defer cancel()
	// The node goes back later than the checks take, and the time until the provider applies the configuration for good.
	back := 2 * t.limit()
	if err := api.Try(calling, t.member.Address, configuration, back); err != nil {
		return err
	}
	t.checker.Access.Redial(t.member.Address)
	if err := t.settle(ctx, before); err != nil {
		return fmt.Errorf("it does not stay healthy with its new configuration: %w\n  it takes the configuration back within %s "+
			"by itself, and no other node was changed: correct the edit and run `pulumi up` again", err, back)
	}
	t.gate.noteTried(t.member)

	return nil
}

// effects reports whether the configuration changes anything that could do harm, and whether pods of the control plane
// restart with it. A difference that cannot be read could do both.
func (t trial) effects(ctx context.Context, api cluster.Talos, configuration []byte) (needed, restarts bool) {
	calling, cancel := context.WithTimeout(ctx, t.checker.Poll.Call)
	defer cancel()
	active, err := api.Configuration(calling, t.member.Address)
	if err != nil {
		return true, true
	}
	lines, err := machineconfig.Differences(configuration, active)
	if err != nil {
		return true, true
	}
	for _, line := range lines {
		if !slices.ContainsFunc(harmless, func(path string) bool { return strings.HasPrefix(line, path) }) {
			needed, restarts = true, restarts || restarting.MatchString(line) && !strings.Contains(line, "certSANs")
		}
	}

	return needed, restarts
}

// limit returns how long the node has to be healthy with what it tries.
func (t trial) limit() time.Duration { return min(trialLimit, t.checker.Poll.Timeout) }

// settle waits until the node was healthy without a break. With the hashes that its pods had before, it waits until one
// of them is another, too.
func (t trial) settle(ctx context.Context, before map[string]string) error {
	limit := t.limit()
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	settle := t.checker.Poll.Interval
	restarted := time.Now().Add(min(restartLimit, limit/2))
	last := errors.New("it was healthy for too short a time")
	var since time.Time
	err := cluster.Poll(waiting, min(time.Second, settle), func(ctx context.Context) (bool, error) {
		found := t.check(ctx)
		if found == nil && before != nil && time.Now().Before(restarted) {
			now, err := t.podHashes(ctx)
			switch {
			case err != nil:
				found = err
			case maps.Equal(now, before):
				found = errors.New("its control plane has not restarted yet")
			default:
				before = nil
			}
		}
		if found != nil {
			cluster.Remember(ctx, &last, found)
			since = time.Time{}

			return false, nil
		}
		if since.IsZero() {
			since = time.Now()
		}

		return time.Since(since) >= settle, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return last
	}

	return err
}

// podHashes returns the hashes of the control plane's pods on the node, as its kubelet runs them.
func (t trial) podHashes(ctx context.Context) (map[string]string, error) {
	calling, cancel := context.WithTimeout(ctx, t.checker.Poll.Call)
	defer cancel()
	api, err := t.checker.Access.Kubernetes(calling)
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for _, component := range staticComponents {
		name := string(component) + "-" + t.member.Hostname
		pod, err := api.CoreV1().Pods(health.SystemNamespace).Get(calling, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("asking for pod %s: %w", name, err)
		}
		if err == nil { // one that is being replaced is not there for a moment
			hashes[name] = pod.Annotations["kubernetes.io/config.hash"]
		}
	}

	return hashes, nil
}

// check looks at the one node, not at those that something else is wrong with.
func (t trial) check(ctx context.Context) error {
	c := t.checker.Cluster
	c.Members, c.Down = []cluster.Member{t.member}, nil
	c.Leaving, c.KubeProxy, c.CoreDNS = true, false, false

	return health.Healthy(ctx, t.checker.Access, c, t.checker.Poll.Call)
}
