// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"regexp"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

var (
	tokenForm = regexp.MustCompile(`^\S+@\S+!\S+=[a-zA-Z0-9-]+$`)
	userForm  = regexp.MustCompile(`^[^\s@!]+@[A-Za-z0-9_.-]+$`)
)

// proxmox checks how to reach Proxmox VE and the host pool.
func (r *rules) proxmox() {
	p := r.c.Proxmox
	if p.Endpoint != nil {
		if _, ok := webURL(*p.Endpoint, "https"); !ok {
			r.l.Addf("proxmox.endpoint", "%q is no address of a Proxmox API: write https://<host>:8006", *p.Endpoint)
		}
	}
	r.credentials(p)
	r.ssh()
	if len(p.Hosts) > 0 && p.DefaultHost != nil {
		r.knownHost("proxmox.defaultHost", *p.DefaultHost)
	}
	for _, name := range sortedKeys(p.Hosts) {
		h, at := p.Hosts[name], check.Key("proxmox.hosts", name)
		if !hostForm.MatchString(name) {
			r.l.Addf(at, "%q is no name of a Proxmox host", name)
		}
		r.datastore(at+".datastore", h.Datastore)
		r.datastore(at+".imageDatastore", h.ImageDatastore)
		if h.Zone != nil && !isLabelValue(*h.Zone) {
			r.l.Addf(at+".zone", "%q is no value of a Kubernetes label", *h.Zone)
		}
	}
}

func (r *rules) credentials(p spec.Proxmox) {
	if p.APIToken != nil && !tokenForm.MatchString(p.APIToken.Reveal()) {
		r.l.Addf("proxmox.apiToken", "is not a token: write user@realm!name=uuid")
	}
	if p.APIToken != nil && p.Password != nil {
		r.l.Addf("proxmox.password", "stands beside an API token: keep one of them")
	}
	if p.APIToken == nil && (p.Username == nil) != (p.Password == nil) {
		r.l.Addf("proxmox", "needs username and password together")
	}
	if p.Username != nil && !userForm.MatchString(*p.Username) {
		r.l.Addf("proxmox.username", "%q is no user: write user@realm, such as root@pam", *p.Username)
	}
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// isLabelValue says whether text is a value of a Kubernetes label.
func isLabelValue(text string) bool { return text == "" || qualifiedForm.MatchString(text) }

func (r *rules) datastore(path string, name *string) {
	if name != nil && !datastoreForm.MatchString(*name) {
		r.l.Addf(path, "%q is no name of a datastore", *name)
	}
}

// ssh checks access to the hosts.
func (r *rules) ssh() {
	s := r.c.Proxmox.SSH
	if s == nil {
		return
	}
	if s.PrivateKey == nil && s.Password == nil && !spec.Or(s.Agent, false) {
		r.l.Addf("proxmox.ssh", "needs a privateKey, a password, or agent: true")
	}
	if s.PrivateKey != nil && !isPrivateKey(s.PrivateKey.Reveal()) {
		r.l.Addf("proxmox.ssh.privateKey", "is not a private key without passphrase, in OpenSSH or PEM form")
	}
	for _, host := range sortedKeys(s.Nodes) {
		at := check.Key("proxmox.ssh.nodes", host)
		if len(r.c.Proxmox.Hosts) > 0 {
			r.knownHost(at, host)
		}
		if u, ok := webURL("ssh://"+s.Nodes[host], "ssh"); !ok || !hostname(u.Hostname()) || u.Path != "" {
			r.l.Addf(at, "%q is neither an address nor address:port", s.Nodes[host])
		}
	}
}

// knownHost records a host that the pool does not have.
func (r *rules) knownHost(path, host string) {
	if _, ok := r.c.Proxmox.Hosts[host]; ok {
		return
	}
	hint := ": add it there, or name another"
	if best := check.Nearest(host, sortedKeys(r.c.Proxmox.Hosts)); best != "" {
		hint = "; did you mean \"" + best + "\"?"
	}
	r.l.Addf(path, "host %q is not in proxmox.hosts%s", host, hint)
}

// onlyRoot records a setting that Proxmox takes from root@pam with a password alone, where other
// credentials are given.
func (r *rules) onlyRoot(path string) {
	p := r.c.Proxmox
	if p.APIToken == nil && (p.Username == nil || *p.Username == "root@pam") {
		return
	}
	with := "an API token"
	if p.APIToken == nil {
		with = *p.Username
	}
	r.l.Addf(path,
		"needs proxmox.username root@pam with a password, and the credentials are those of %s: change "+
			"them, or remove it", with)
}

// image checks what an image shares with the rest; package image checks it alone.
func (r *rules) image(path string, img spec.Image) {
	r.datastore(path+".datastore", img.Datastore)
	if img.DatastoreHost != nil && len(r.c.Proxmox.Hosts) > 0 {
		r.knownHost(path+".datastoreHost", *img.DatastoreHost)
	}
	r.each(path+".kernelArgs", img.KernelArgs, isArgument,
		"is not one kernel argument: write each as an entry of its own")
	if *img.Boot == "disk" && r.c.Proxmox.SSH == nil {
		r.l.Addf(path+".boot", "is disk, which needs SSH to the hosts: add proxmox.ssh, or boot the iso")
	}
	if img.Overlay != nil && *img.Arch != "arm64" {
		r.l.Addf(path+".overlay", "is for arm64 boards, and arch is %s: remove it", *img.Arch)
	}
}

var argumentForm = regexp.MustCompile(`^\S+$`)

func isArgument(text string) bool { return argumentForm.MatchString(text) }
