// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package lab

import (
	"github.com/talos-proxmox/talos-proxmox/lab/env"
	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/tools"
)

// Option sets something for [Start].
type Option func(*settings)

type settings struct {
	speed      float64
	providers  env.Choice
	definition *site.Definition
	tools      tools.Dir
}

// Speed returns how many times faster than life booting, installing and waiting goes; 60 unless set. It must
// be above 0.
func Speed(factor float64) Option { return func(s *settings) { s.speed = factor } }

// Site returns what the site consists of. Unless set it is [site.DefaultDefinition], on which a host comes into
// being when a program first names it.
func Site(d site.Definition) Option { return func(s *settings) { s.definition = &d } }

// Hosts makes a site of exactly these hosts, with [site.DefaultStorages]: a program that names another one
// fails as on Proxmox VE.
func Hosts(hosts ...site.HostDef) Option {
	return Site(site.Definition{Clusters: []site.ClusterDef{{
		Name: site.DefaultCluster, Hosts: hosts, Storages: site.DefaultStorages(),
	}}})
}

// Providers says who does the providers' work; [env.Auto] unless set.
func Providers(c env.Choice) Option { return func(s *settings) { s.providers = c } }

// Tools returns the absolute path of the directory that `make tools` filled. Unless set it is $LAB_BIN, else bin in
// the test's directory or the nearest one above it.
func Tools(dir string) Option { return func(s *settings) { s.tools = tools.Dir(dir) } }
