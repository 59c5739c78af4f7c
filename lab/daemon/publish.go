// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/charts"
	"github.com/talos-proxmox/talos-proxmox/lab/ciliumcli"
	"github.com/talos-proxmox/talos-proxmox/lab/factory"
	"github.com/talos-proxmox/talos-proxmox/lab/fault"
	"github.com/talos-proxmox/talos-proxmox/lab/gateway"
	"github.com/talos-proxmox/talos-proxmox/lab/git"
	"github.com/talos-proxmox/talos-proxmox/lab/kube"
	"github.com/talos-proxmox/talos-proxmox/lab/proxmox"
)

const proxmoxPort = 8006

// publish puts the site's HTTP services on its network.
func (d *Daemon) publish(ctx context.Context, images *factory.Factory) {
	n := d.site.Net()
	api := proxmox.New(d.site, &proxmox.Auth{
		Tokens: []proxmox.Token{{Value: d.secrets.Token}}, Password: d.secrets.Password,
	})
	gateway.HTTPS(ctx, n, d.authority, d.opts.Log, port(proxmoxPort), api)

	web := &gateway.Web{}
	web.Host(factory.Host, images)
	web.Mirror(factory.Serves, images)

	hosts, err := charts.Hosts(d.opts.Charts)
	if err != nil {
		d.opts.Log.Warn("the lab has no chart repositories", "error", err)
	}
	repositories := charts.Handler(d.opts.Charts)
	for _, host := range hosts {
		web.Host(host, repositories)
		web.Mirror(below(host), repositories)
	}
	web.Mirror(charts.ServesOCI(d.opts.Charts), charts.RegistryHandler(d.opts.Charts))
	web.Mirror(git.Serves, d.git)
	n.Catch(isGitSSH, func(conn net.Conn, host string) { d.git.ServeSSH(ctx, conn, host) })
	n.Catch(d.isHostSSH, func(conn net.Conn, host string) {
		if addr, err := netip.ParseAddr(host); err == nil {
			proxmox.ServeSSH(ctx, d.site, conn, addr)
		}
	})
	outside := d.faults.HTTP(fault.Web, "", func(w http.ResponseWriter, a fault.Answer) {
		http.Error(w, a.Message, a.Status)
	}, web)
	gateway.HTTPS(ctx, n, d.authority, d.opts.Log, port(443), outside)
	gateway.HTTP(ctx, n, d.opts.Log, port(80), outside)
}

// programs do the work of what containers of the site's clusters run.
func (d *Daemon) programs() []kube.Program {
	return []kube.Program{ciliumcli.CLI{Chart: func(repository, name, version string) ([]byte, error) {
		return charts.Find(d.opts.Charts, repository, name, version)
	}}}
}

// isGitSSH reports whether a git host of the site answers by SSH: at every name, at the ports in use.
func isGitSSH(host string, port uint16) bool {
	const standard, unprivileged = 22, 2222
	_, err := netip.ParseAddr(host)

	return err != nil && (port == standard || port == unprivileged)
}

// isHostSSH reports whether a Proxmox VE host answers by SSH there.
func (d *Daemon) isHostSSH(host string, port uint16) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil || port != proxmox.SSHPort {
		return false
	}
	_, _, found := d.site.HostAt(addr)

	return found
}

func port(want uint16) func(string, uint16) bool {
	return func(_ string, have uint16) bool { return have == want }
}

// below reports whether a mirror's path leads to a host's files.
func below(host string) func(path string) bool {
	return func(path string) bool { return strings.HasPrefix(path, "/"+host+"/") }
}
