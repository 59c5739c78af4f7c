// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/ca"
	"github.com/talos-proxmox/talos-proxmox/lab/factory"
	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/gateway"
	"github.com/talos-proxmox/talos-proxmox/lab/git"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/talos"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
	"github.com/talos-proxmox/talos-proxmox/lab/talos/onkube"
)

// DefaultSpeed makes a node's boot and install take a second or two.
const DefaultSpeed = 60

// Options say what to run.
type Options struct {
	// Dir holds the site; it is made when missing.
	Dir string
	// Speed is how many times faster than life the site's waits pass; 0 means [DefaultSpeed].
	Speed float64
	// Steps are those that take other than what the lab takes for them.
	Steps guest.Steps
	// Kubernetes is the path of the program lab-kubernetes.
	Kubernetes string
	// Charts is the directory of the chart repositories. A lab without one has no chart repositories.
	Charts string
	// Flux is the directory of Flux's controllers. Without them the pods of Flux do nothing.
	Flux string
	// Program is the path of the command lab, which supervises the controllers.
	Program string
	// Definition is what a new site consists of; nil means [site.DefaultDefinition].
	Definition *site.Definition
	// Log gets what happens on the site; nil keeps nothing.
	Log *slog.Logger
}

// Daemon runs a lab.
type Daemon struct {
	opts      Options
	siteDir   SiteDir
	unlock    func()
	authority *ca.Authority
	secrets   secrets
	trace     *os.File
	site      *site.Site
	nodes     *node.Nodes
	gateway   *gateway.Gateway
	socks     *gateway.Socks
	git       *git.Host
	faults    *fault.Set
	commands  *commands
	control   *http.Server
	asked     chan struct{} // gets a value when another process asks the lab to stop
}

// Open runs the lab of a directory until [Daemon.Close]. A directory has one lab at a time.
func Open(ctx context.Context, opts Options) (*Daemon, error) {
	if opts.Speed == 0 {
		opts.Speed = DefaultSpeed
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the site's directory: %w", err)
	}

	d := &Daemon{opts: opts, siteDir: SiteDir(opts.Dir), asked: make(chan struct{}, 1), commands: newCommands()}
	unlock, err := d.siteDir.lock()
	if err != nil {
		return nil, err
	}
	d.unlock = unlock
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	opts.Log.Info("the lab runs", "site", opts.Dir, "gateway", d.gateway.Addr(), "speed", opts.Speed)

	return d, nil
}

// Serve runs the lab of a directory until ctx ends or another process asks it to stop.
func Serve(ctx context.Context, opts Options) error {
	d, err := Open(ctx, opts)
	if err != nil {
		return err
	}

	select {
	case <-ctx.Done():
	case <-d.asked:
	}
	d.opts.Log.Info("the lab stops")

	return d.Close()
}

// Site returns the lab's site.
func (d *Daemon) Site() *site.Site { return d.site }

// Info returns what a command needs to know of the lab.
func (d *Daemon) Info() Info {
	return Info{
		PID: os.Getpid(), Site: d.opts.Dir, Gateway: d.gateway.URL(), Bundle: d.authority.BundlePath(),
		Socks: strings.TrimPrefix(d.socks.URL(), "socks5h://"),
		Token: d.secrets.Token, Speed: d.opts.Speed, GitToken: d.secrets.GitToken, HostKey: d.git.HostKey(),
	}
}

func (d *Daemon) path(name string) string { return filepath.Join(d.opts.Dir, name) }

// open puts the lab together.
func (d *Daemon) open(ctx context.Context) error {
	var err error
	if d.authority, err = ca.Load(d.opts.Dir); err != nil {
		return err // says what it is about
	}
	if d.secrets, err = loadSecrets(d.path("secrets.json")); err != nil {
		return err
	}
	if d.git, err = git.Open(d.path("git"), d.secrets.GitToken, d.opts.Log); err != nil {
		return err // says what it is about
	}
	images, err := factory.Open(d.path("factory"))
	if err != nil {
		return err // says what it is about
	}
	if d.trace, err = os.OpenFile(d.path(traceFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("opening the trace: %w", err)
	}

	trace := guest.NewTrace(d.trace)
	d.faults = fault.New(trace, d.known)
	trace.Watch(d.killAt)

	client := &http.Client{}
	d.nodes = talos.New(node.Options{
		Kubernetes: onkube.Kubernetes{Binary: d.opts.Kubernetes, Programs: d.programs(), Beside: d.beside()},
		Dir:        d.path("kubernetes"), HTTPClient: client, Log: d.opts.Log,
	})
	d.site, err = site.Open(site.Options{
		Dir: d.opts.Dir, Definition: d.opts.Definition, Clock: guest.Clock{Speed: d.opts.Speed, Steps: d.opts.Steps}, Trace: trace,
		Guest: d.nodes.Guest, HTTP: client, PullImage: images.PullImage, Faults: d.faults, Log: d.opts.Log,
		DiskDeleted: func(content []byte) {
			if err := d.nodes.DiskDeleted(content); err != nil {
				d.opts.Log.Error("forgetting a deleted disk", "error", err)
			}
		},
	})
	if err != nil {
		return err // says what it is about
	}
	client.Transport = d.authority.Transport(d.site.Net().DialContext)

	d.publish(ctx, images)
	if d.gateway, err = gateway.Start(d.site.Net(), "127.0.0.1:0", d.opts.Log); err != nil {
		return err // says what it is about
	}
	if d.socks, err = gateway.StartSocks(d.site.Net(), "127.0.0.1:0", d.opts.Log); err != nil {
		return err // says what it is about
	}
	d.site.Resume()
	d.control, err = d.listen()

	return err
}

// Close ends everything that opening has made. VMs that run will run again when the site is next opened.
func (d *Daemon) Close() error {
	var errs []error
	if d.control != nil {
		// Whoever told it to stop gets an answer.
		last, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		errs = append(errs, d.control.Shutdown(last))
	}
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
	if d.control != nil {
		_ = os.Remove(d.siteDir.socket()) // closing has removed it
	}
	d.unlock()

	return errors.Join(errs...)
}
