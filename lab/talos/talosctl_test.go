// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded"
	"github.com/talos-proxmox/talos-proxmox/lab/recorded/kubelets"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/onkube"
)

// talosctlCommands returns what is run, and why it may end otherwise in the lab, or print another heading.
func talosctlCommands() []struct{ command, why string } {
	const processes = "the lab's nodes run no processes"

	return []struct{ command, why string }{
		{"version", ""}, {"services", ""}, {"service etcd", ""}, {"service nonsense", ""},
		{"get machinestatus", ""}, {"get members", ""}, {"get nodename", ""}, {"get addresses", ""}, {"get links", ""},
		{"get staticpods", ""}, {"get machineconfig -o yaml", ""}, {"get nonsense", ""}, {"get certsans", ""}, {"get rd", ""},
		{"get extensions", ""}, {"get systemdisk", ""}, {"get volumestatus", ""}, {"get disks", ""}, {"get services", ""},
		{"etcd members", ""}, {"etcd status", ""}, {"etcd alarm list", ""}, {"etcd defrag", ""},
		{"etcd snapshot SNAPSHOT", "the lab's store has a form of its own, which talosctl cannot verify"},
		{"etcd forfeit-leadership", ""}, {"etcd remove-member 12345", ""},
		{"dmesg", ""}, {"logs machined", ""}, {"logs etcd --tail 1", ""}, {"logs nonsense", ""},
		{"read /etc/os-release", ""}, {"read /etc/nonsense", ""}, {"time", "neither reaches a time server"},
		{"events --tail 3 --duration 1s", ""}, {"image list --namespace system", ""},
		{"memory", ""}, {"mounts", ""}, {"processes", ""}, {"containers", ""}, {"containers -k", ""}, {"stats", ""}, {"netstat", ""},
		{"list /etc", ""}, {"usage /etc", ""}, {"list /nonsense", ""}, {"cgroups", processes},
		{"health --server=false --wait-timeout 15s --control-plane-nodes 10.0.0.1 --worker-nodes 10.0.0.2", ""},
		{"inspect dependencies", "the lab has no controllers"},
		{"kubeconfig KUBECONFIG", ""}, {"config info", ""}, {"support -O SUPPORT --num-workers 1", ""},
		{"reset --wait=false --system-labels-to-wipe NONSENSE", "in a container Talos refuses this"},
		{"rollback", "in a container Talos refuses this"},
		{"upgrade --wait=false --image 10.0.0.77:5000/nonsense:v1", "in a container Talos refuses this"},
		{"meta write 0x0a x", "in a container Talos refuses this"}, {"service kubelet restart", ""},
	}
}

// talosctl runs genuine talosctl, whose connections all lead to one bench.
type talosctl struct{ program, dir, proxy, node string }

// newTalosctl returns talosctl for a node.
func newTalosctl(t *testing.T, b *bench, c *cluster, node string) talosctl {
	t.Helper()
	dir := t.TempDir()
	config, err := c.input.Talosconfig()
	require.NoError(t, err)
	require.NoError(t, config.Save(filepath.Join(dir, "talosconfig")))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, err := b.connect(r.Context(), r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)

			return
		}
		from, _, err := w.(http.Hijacker).Hijack() // as servers of net/http are
		if err != nil {
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	t.Cleanup(proxy.Close)
	program, err := filepath.Abs(filepath.Join(*genuine, "talosctl"))
	require.NoError(t, err)

	return talosctl{program: program, dir: dir, proxy: proxy.URL, node: node}
}

// connect reaches an address of the bench's nodes.
func (b *bench) connect(ctx context.Context, address string) (net.Conn, error) {
	if b.dial != nil {
		return b.dial(ctx, address)
	}

	return b.net.DialContext(ctx, "tcp", address)
}

// run runs a command, and returns its exit code and the lines it printed.
func (c talosctl) run(command string) (int, []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	args := strings.Fields(command)
	for i, a := range args {
		if a == strings.ToUpper(a) && len(a) > 8 { // a file
			args[i] = filepath.Join(c.dir, a)
		}
	}
	args = append(args, "--nodes", c.node, "--endpoints", c.node)
	process := exec.CommandContext(ctx, c.program, args...)
	process.Dir = c.dir
	process.Env = []string{
		"HTTPS_PROXY=" + c.proxy, "TALOSCONFIG=" + filepath.Join(c.dir, "talosconfig"), "HOME=" + c.dir, "PATH=" + os.Getenv("PATH"),
	}
	out, err := process.CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	}

	return code, strings.Split(strings.TrimSpace(string(out)), "\n")
}

// kubernetesBench returns a node whose Kubernetes is not played.
func kubernetesBench(t *testing.T) (*bench, *cluster, *vm) {
	t.Helper()
	binary, err := filepath.Abs("../../bin/lab-kubernetes")
	require.NoError(t, err)
	b := newBench(t)
	b.nodes = talos.New(node.Options{Kubernetes: onkube.Kubernetes{Binary: binary}, Dir: t.TempDir()})
	c := b.clusterAt("https://10.0.0.1:6443", sharedSecrets())
	v := b.unfinishedIn(c, "scsi0")
	c.bootstrap(v)
	b.awaitServing(v)
	api := genuineTalos{bench: b}
	site := kubelets.Site{Client: api.kubernetes(c, v), Control: "n1", Patience: waitLimit}
	w := b.vm(2, recordedVersion)
	w.on()
	b.apply(w, c.config(machine.TypeWorker, "w1", func(cfg *v1alpha1.Config) {
		cfg.MachineConfig.MachineInstall.InstallImage = installer + schematicA + ":" + recorded.TalosVersion
	}))
	require.NoError(t, site.Connect(t.Context(), "n1", "w1"))

	return b, c, v
}

var blanks = regexp.MustCompile(`\s+`)

// compareTalosctl runs every command against genuine Talos and against the lab. Both end alike, and print the same heading.
func (g *genuineTalos) compareTalosctl(t *testing.T) {
	t.Helper()
	b, c, v := kubernetesBench(t)
	theirs, ours := newTalosctl(t, g.bench, g.cluster, "10.0.0.1"), newTalosctl(t, b, c, v.addr())
	alike := 0
	for _, try := range talosctlCommands() {
		wantCode, want := theirs.run(try.command)
		gotCode, got := ours.run(try.command)
		heading := func(lines []string) string { return blanks.ReplaceAllString(lines[0], " ") }
		table := strings.HasPrefix(want[0], "NODE ")
		switch {
		case wantCode == gotCode && (!table || heading(want) == heading(got)):
			alike++
		case try.why == "":
			assert.Fail(t, "talosctl", "%s\nwant %d %s\ngot  %d %s", try.command, wantCode, cut(want[:min(len(want), 5)]), gotCode, cut(got[:min(len(got), 5)]))
		default:
			fmt.Printf("talosctl %s: %s\n  Talos: %d %s\n  lab:   %d %s\n", try.command, try.why, wantCode, cut(want[:1]), gotCode, cut(got[:1]))
		}
	}
	fmt.Printf("talosctl: %d of %d commands end alike\n", alike, len(talosctlCommands()))
}
