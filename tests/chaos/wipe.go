// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
)

// wipe has a node reset itself, as `talosctl reset --graceful=false --reboot` does.
func (r *Runner) wipe(ctx context.Context, address string) error {
	out := r.pulumi(ctx, "stack", "output", "talosconfig", "--show-secrets", "--stack", stackName)
	if out.exit != 0 {
		return nil // there is no cluster yet
	}
	cfg, err := config.FromString(out.stdout)
	if err != nil {
		return err
	}
	proxy, err := r.proxy(ctx)
	if err != nil {
		return err
	}
	c, err := client.New(ctx, client.WithConfig(cfg), client.WithEndpoints(address),
		client.WithGRPCDialOptions(grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			return connect(ctx, proxy, to)
		})))
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // nothing is left to be sent
	calling, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_ = c.Reset(client.WithNode(calling, address), false, true) // a node that does not answer is out already

	return nil
}

// proxy returns the address of the lab's gateway.
func (r *Runner) proxy(ctx context.Context) (string, error) {
	for line := range strings.Lines(r.exec(ctx, "env").stdout) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "HTTPS_PROXY="); ok {
			u, err := url.Parse(value)
			if err != nil {
				return "", err
			}

			return u.Host, nil
		}
	}

	return "", errors.New("the lab has no gateway")
}

// connect leads into the site through the lab's gateway.
func connect(ctx context.Context, proxy, to string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", proxy)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the gateway does not lead to %s: %s", to, answer.Status)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	return conn, nil
}
