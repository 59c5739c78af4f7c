// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// How an operation is repeated: the genuine plugin doubles from half a second to ten; here the
// longest pause is one second, since the lab's nodes boot in seconds.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = time.Second

	defaultTimeout = 10 * time.Minute
)

// clientConfig reads a clientConfiguration block; name becomes its context.
func clientConfig(name string, t bridge.Tree) (*clientconfig.Config, error) {
	d := decoder{from: t}

	cfg := clientconfig.NewConfig(name, nil, d.bytes("caCertificate"), &x509.PEMEncodedCertificateAndKey{
		Crt: d.bytes("clientCertificate"), Key: d.bytes("clientKey"),
	})
	if d.err != nil {
		return nil, d.err
	}

	return cfg, nil
}

// target names the node of an operation.
type target struct {
	endpoint, node string
	config         *clientconfig.Config
}

func targetOf(in bridge.Tree) (target, error) {
	cfg, err := clientConfig("dynamic", in.Sub("clientConfiguration"))
	if err != nil {
		return target{}, fmt.Errorf("Error converting config to talos client config: %w", err) // the plugin's text
	}

	return target{endpoint: endpointOf(in), node: in.Str("node"), config: cfg}, nil
}

func endpointOf(in bridge.Tree) string {
	if e := in.Str("endpoint"); e != "" {
		return e
	}

	return in.Str("node")
}

// do runs an operation on the node: without credentials if it answers so, which is how a node in
// maintenance is told, else with the client certificate.
func (t target) do(ctx context.Context, op func(context.Context, *client.Client) error) error {
	nodeCtx := client.WithNode(ctx, t.node)

	c, err := client.New(ctx,
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), // as the genuine plugin
		client.WithEndpoints(t.endpoint))
	if err != nil {
		return err
	}

	if _, err := c.Disks(nodeCtx); err != nil {
		_ = c.Close()

		c, err = client.New(ctx, client.WithConfig(t.config), client.WithEndpoints(t.endpoint))
		if err != nil {
			return err
		}
	}
	defer c.Close() //nolint:errcheck // nothing is lost

	return op(nodeCtx, c)
}

// retry repeats an operation until it succeeds, is refused as invalid, or the time is over; then it
// returns the last error.
func retry(ctx context.Context, timeout time.Duration, op func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := op(ctx)
		if err == nil || status.Code(err) == codes.InvalidArgument {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err // what came of the end of time explains less than what came before
		}

		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return last
		case <-timer.C:
		}
	}
}

// timeoutOf reads a duration such as timeouts.create.
func timeoutOf(in bridge.Tree, path string) (time.Duration, error) {
	text := in.Str(path)
	if text == "" {
		return defaultTimeout, nil
	}

	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}

	return d, nil
}

// turnaround returns what the plugin says of a resource with timeouts, once it has made it: the bridge that it
// is built with does not take its own record of them.
func turnaround(in bridge.Tree) error {
	if !in.Has("timeouts") {
		return nil
	}

	return errors.New(`failed recovering value for turnaround check: Data integrity error: "__pulumi_raw_state_delta" ` +
		"does not apply cleanly to the resource state\n\nIf you are editing the state manually, try removing the " +
		"\"__pulumi_raw_state_delta\" key and run Pulumi again.\n\nIf no manual state edits were involved, please report " +
		"this as a bug\n\n    https://github.com/pulumi/pulumi-terraform-bridge/issues\n\nDetail: rawStateRecoverNatural " +
		"cannot process Object values due to map vs object confusion")
}

func validTimeouts(p *bridge.Problems, in bridge.Tree) {
	for name, v := range in.Sub("timeouts") {
		text, _ := v.(string)
		if _, err := time.ParseDuration(text); text != "" && err != nil {
			p.Add(bridge.Path{"timeouts", name},
				"Value Must Be A Duration. Must be a string containing a sequence of decimal numbers, got %q", text)
		}
	}
}
