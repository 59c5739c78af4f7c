// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package vms

import (
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

var (
	sshUser  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	userForm = regexp.MustCompile(`^[^\s@!]+@[A-Za-z0-9_.-]+$`)
)

// isEndpoint reports whether a text is the address of a Proxmox API.
func isEndpoint(text string) bool {
	u, ok := scope.WebURL(text, "https")

	return ok && u.RawQuery == "" && u.Fragment == "" && !strings.Contains(u.Path, "/api2") && !scope.Nobody(u.Hostname())
}

// proxmox checks how to reach Proxmox VE and the host pool.
func (r *rules) proxmox() {
	p := r.Config.Proxmox
	if p.Endpoint != nil {
		if !isEndpoint(*p.Endpoint) {
			r.Addf("proxmox.endpoint", "%q is no address of a Proxmox API: write https://<host>:8006", *p.Endpoint)
		}
	}
	r.credentials(p)
	r.ssh()
	if len(p.Hosts) > 0 && p.DefaultHost != nil {
		r.KnownHost("proxmox.defaultHost", *p.DefaultHost)
	}
	for _, name := range scope.SortedKeys(p.Hosts) {
		h, at := p.Hosts[name], check.Key("proxmox.hosts", name)
		if !scope.HostForm.MatchString(name) {
			r.Addf(at, "%q is no name of a Proxmox host", name)
		}
		r.Datastore(at+".datastore", h.Datastore)
		r.Datastore(at+".imageDatastore", h.ImageDatastore)
		if h.Zone != nil && !scope.IsLabelValue(*h.Zone) {
			r.Addf(at+".zone", "%q is no value of a Kubernetes label", *h.Zone)
		}
	}
}

func (r *rules) credentials(p spec.Proxmox) {
	if p.APIToken != nil && !scope.TokenForm.MatchString(p.APIToken.Reveal()) {
		r.Addf("proxmox.apiToken", "is not a token: write user@realm!name=uuid")
	}
	if p.APIToken != nil && p.Password != nil {
		r.Addf("proxmox.password", "is set beside an API token: keep one of them")
	}
	if p.APIToken == nil {
		r.Together("proxmox", r.Access.Username != nil, r.Access.Password != nil)
	}
	if p.Username != nil && !userForm.MatchString(*p.Username) {
		r.Addf("proxmox.username", "is no user of Proxmox VE: write user@realm, such as root@pam")
	}
}

// ssh checks access to the hosts.
func (r *rules) ssh() {
	s := r.Config.Proxmox.SSH
	if s == nil {
		return
	}
	if s.PrivateKey == nil && s.Password == nil && !spec.Value(s.Agent) {
		r.Addf("proxmox.ssh", "needs a privateKey, a password, or agent: true")
	}
	if !sshUser.MatchString(s.Username) && s.Username != "" {
		r.Addf("proxmox.ssh.username", "is no name of a user: write one such as root")
	}
	if s.PrivateKey != nil && !scope.IsPrivateKey(s.PrivateKey.Reveal()) {
		r.Addf("proxmox.ssh.privateKey", "is not a private key without passphrase, in OpenSSH or PEM form")
	}
	r.sshAddresses(s.Nodes)
}

// sshAddresses checks the addresses at which hosts are reached by SSH.
func (r *rules) sshAddresses(addresses map[string]string) {
	hosts := map[string]string{}
	for _, host := range scope.SortedKeys(addresses) {
		if other, twice := hosts[addresses[host]]; twice {
			r.Addf(check.Key("proxmox.ssh.nodes", host), "%s is the address of %s too: write the address of each host", addresses[host], other)
		}
		hosts[addresses[host]] = host
	}
	for _, host := range scope.SortedKeys(addresses) {
		at := check.Key("proxmox.ssh.nodes", host)
		if len(r.Config.Proxmox.Hosts) > 0 {
			r.KnownHost(at, host)
		}
		if u, ok := scope.WebURL("ssh://"+addresses[host], "ssh"); !ok || !scope.IsHostname(u.Hostname()) || u.Path != "" ||
			scope.Nobody(u.Hostname()) {
			r.Addf(at, "%q is neither an address nor address:port", addresses[host])
		}
	}
}

// onlyRoot records a setting that Proxmox takes from root@pam with a password alone, where the provider will ask
// with other credentials. A token counts before a password, wherever each is written.
func (r *rules) onlyRoot(path string) {
	p := r.Access
	if p.APIToken == nil && (p.Username == nil || *p.Username == "root@pam") {
		return
	}
	with := "an API token"
	switch {
	case p.APIToken == nil:
		with = *p.Username
	case r.Config.Proxmox.APIToken == nil:
		with = "an API token, PROXMOX_VE_API_TOKEN, which counts before a password"
	}
	r.Addf(path,
		"needs proxmox.username root@pam with a password, and the credentials are those of %s: change "+
			"them, or remove it", with)
}

// image checks what an image shares with the rest; package image checks it alone.
func (r *rules) image(path string, img spec.Image) {
	r.Datastore(path+".datastore", img.Datastore)
	if img.DatastoreHost != nil && len(r.Config.Proxmox.Hosts) > 0 {
		r.KnownHost(path+".datastoreHost", *img.DatastoreHost)
	}
	r.Each(path+".kernelArgs", img.KernelArgs, isArgument,
		"is not one kernel argument: write each as an entry of its own")
	r.arguments(path, img)
	if m := spec.Value(img.InstallerMirror); isRegistry(m) && !mirrorForm.MatchString(m) {
		r.Addf(path+".installerMirror", "%q is no registry: write host and path in small letters, without a slash at the end", m)
	}
	if *img.Boot == "disk" && r.Config.Proxmox.SSH == nil {
		r.Addf(path+".boot", "is disk, which needs SSH to the hosts: add proxmox.ssh, or boot the iso")
	}
	if img.Overlay != nil && *img.Arch != "arm64" {
		r.Addf(path+".overlay", "is for arm64 boards, and arch is %s: remove it", *img.Arch)
	}
}

var argumentForm = regexp.MustCompile(`^\S+$`)

func isArgument(text string) bool { return argumentForm.MatchString(text) }
