// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// pinned returns the plugins that the stand-ins stand for.
func pinned() map[string]string {
	return map[string]string{"proxmoxve": "6.18.1", "talos": "0.7.1", "kubernetes": "4.33.0"}
}

// pluginBinary returns where Pulumi has a plugin in its pinned version, whether or not it is there.
func pluginBinary(t *testing.T, name string) string {
	t.Helper()

	home := os.Getenv("PULUMI_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		require.NoError(t, err)
		home = filepath.Join(user, ".pulumi")
	}

	return filepath.Join(home, "plugins", "resource-"+name+"-v"+pinned()[name], "pulumi-resource-"+name)
}

// genuine starts a genuine plugin, which must be installed, and returns its port.
func genuine(t *testing.T, name string) int {
	t.Helper()

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), pluginBinary(t, name), fakeEngine(t))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})

	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the plugin says its port")
	port, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)

	return port
}

// logger plays as much of an engine as a plugin talks to.
type logger struct {
	pulumirpc.UnimplementedEngineServer

	mu    sync.Mutex
	lines []string
}

func (l *logger) Log(_ context.Context, r *pulumirpc.LogRequest) (*emptypb.Empty, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.GetSeverity() >= pulumirpc.LogSeverity_WARNING {
		l.lines = append(l.lines, fmt.Sprintf("%s: %s", r.GetUrn(), r.GetMessage()))
	}

	return &emptypb.Empty{}, nil
}

func fakeEngine(t *testing.T) string {
	t.Helper()

	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	pulumirpc.RegisterEngineServer(server, &logger{})
	go func() { _ = server.Serve(l) }() // ends with the test
	t.Cleanup(server.Stop)

	return l.Addr().String()
}
