// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/ca"
	"github.com/talos-proxmox/talos-proxmox/lab/charts"
	"github.com/talos-proxmox/talos-proxmox/lab/factory"
	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/gateway"
	"github.com/talos-proxmox/talos-proxmox/lab/git"
	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/onkube"
)

const proxmoxPort = 8006

// daemon is the running lab.
type daemon struct {
	options
	log       *slog.Logger
	authority *ca.Authority
	secrets   secrets
	trace     *os.File
	site      *site.Site
	nodes     *talos.Nodes
	gateway   *gateway.Gateway
	socks     *gateway.Socks
	git       *git.Host
	faults    *fault.Set
	commands  *commands
	stop      context.CancelFunc
}

// serve runs the lab until it is told to stop.
func serve(o options) error {
	if err := os.MkdirAll(o.site, 0o700); err != nil {
		return fmt.Errorf("making the site's directory: %w", err)
	}
	unlock, err := lock(o)
	if err != nil {
		return err
	}
	defer unlock()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	d := &daemon{options: o, log: slog.New(slog.NewTextHandler(os.Stderr, nil)), commands: newCommands(), stop: stop}
	if err := d.open(ctx); err != nil {
		return errors.Join(err, d.close())
	}
	control, err := d.control()
	if err != nil {
		return errors.Join(err, d.close())
	}
	d.log.Info("the lab runs", "site", o.site, "gateway", d.gateway.Addr(), "speed", o.speed)

	<-ctx.Done()
	d.log.Info("the lab stops")
	// Whoever told it to stop gets an answer.
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = errors.Join(control.Shutdown(last), d.close())
	_ = os.Remove(o.socket()) // closing has removed it

	return err
}

// open puts the lab together.
func (d *daemon) open(ctx context.Context) error {
	kubernetes, err := tool("lab-kubernetes", "LAB_KUBERNETES")
	if err != nil {
		return err
	}
	if _, err := os.Stat(kubernetes); err != nil {
		return fmt.Errorf("%s is missing: run `make tools`", kubernetes)
	}
	if d.authority, err = ca.Load(d.options.site); err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	if d.secrets, err = loadSecrets(d.path("secrets.json")); err != nil {
		return err
	}
	if d.git, err = git.Open(d.path("git"), d.secrets.GitToken, d.log); err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	images, err := factory.Open(d.path("factory"))
	if err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	if d.trace, err = os.OpenFile(d.path("trace.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("opening the trace: %w", err)
	}

	beside, err := d.beside()
	if err != nil {
		return err
	}
	trace := site.NewTrace(d.trace)
	d.faults = fault.New(trace, d.known)
	trace.Watch(d.killAt)

	client := &http.Client{}
	d.nodes = talos.New(talos.Options{
		Kubernetes: onkube.Kubernetes{Binary: kubernetes, Beside: beside},
		Dir:        d.path("kubernetes"), HTTPClient: client, Log: d.log,
	})
	d.site, err = site.Open(site.Options{
		Dir: d.options.site, Clock: site.Clock{Speed: d.speed}, Trace: trace,
		Guest: d.nodes.Guest, HTTP: client, PullImage: images.PullImage, Log: d.log,
		DiskDeleted: func(content []byte) {
			if err := d.nodes.DiskDeleted(content); err != nil {
				d.log.Error("forgetting a deleted disk", "error", err)
			}
		},
	})
	if err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	client.Transport = d.authority.Transport(d.site.Net().DialContext)

	if err := d.publish(ctx, images); err != nil {
		return err
	}
	if d.gateway, err = gateway.Start(d.site.Net(), "127.0.0.1:0", d.log); err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	if d.socks, err = gateway.StartSocks(d.site.Net(), "127.0.0.1:0", d.log); err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	d.site.Resume()

	return nil
}

// publish puts the site's HTTP services on its network.
func (d *daemon) publish(ctx context.Context, images *factory.Factory) error {
	n := d.site.Net()
	api := proxmox.New(d.site, &proxmox.Auth{
		Tokens: []proxmox.Token{{Value: d.secrets.Token}}, Password: d.secrets.Password,
	})
	gateway.HTTPS(ctx, n, d.authority, d.log, port(proxmoxPort), api)

	web := &gateway.Web{}
	web.Host(factory.Host, images)
	web.Mirror(factory.Serves, images)

	dir, err := tool("charts", "LAB_CHARTS")
	if err != nil {
		return err
	}
	hosts, err := charts.Hosts(dir)
	if err != nil {
		d.log.Warn("the lab has no chart repositories", "error", err)
	}
	repositories := charts.Handler(dir)
	for _, host := range hosts {
		web.Host(host, repositories)
		web.Mirror(below(host), repositories)
	}
	web.Mirror(git.Serves, d.git)
	n.Catch(isGitSSH, func(conn net.Conn, host string) { d.git.ServeSSH(ctx, conn, host) })
	gateway.HTTPS(ctx, n, d.authority, d.log, port(443), web)
	gateway.HTTP(ctx, n, d.log, port(80), web)

	return nil
}

// isGitSSH says whether a git host of the site answers by SSH: at every name, at the ports in use.
func isGitSSH(host string, port uint16) bool {
	const standard, unprivileged = 22, 2222
	_, err := netip.ParseAddr(host)

	return err != nil && (port == standard || port == unprivileged)
}

func port(want uint16) func(string, uint16) bool {
	return func(_ string, have uint16) bool { return have == want }
}

// close ends everything that open has made.
func (d *daemon) close() error {
	var errs []error
	if d.gateway != nil {
		errs = append(errs, d.gateway.Close())
	}
	if d.socks != nil {
		errs = append(errs, d.socks.Close())
	}
	if d.site != nil {
		errs = append(errs, d.site.Close())
	}
	if d.nodes != nil {
		errs = append(errs, d.nodes.Close())
	}
	if d.trace != nil {
		errs = append(errs, d.trace.Close())
	}

	return errors.Join(errs...)
}
