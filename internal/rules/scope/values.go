// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"net/netip"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Datastore checks the name of a datastore.
func (s *Scope) Datastore(path string, name *string) {
	if name != nil && !DatastoreForm.MatchString(*name) {
		s.Addf(path, "%q is no name of a datastore", *name)
	}
}

// KnownHost records a host that the pool does not have.
func (s *Scope) KnownHost(path, host string) {
	if _, ok := s.Config.Proxmox.Hosts[host]; ok {
		return
	}
	hint := ": add it there, or name another"
	if best := check.Nearest(host, SortedKeys(s.Config.Proxmox.Hosts)); best != "" {
		hint = "; did you mean \"" + best + "\"?"
	}
	s.Addf(path, "host %q is not in proxmox.hosts%s", host, hint)
}

// Certificate checks a CA certificate.
func (s *Scope) Certificate(path string, ca *spec.Text) {
	if ca != nil && !IsCertificate(*ca) {
		s.Addf(path, "is not a CA certificate that can be read whole: give it in PEM form, from -----BEGIN CERTIFICATE----- to its end")
	}
}

// Patches checks a list of patches; what they do is checked with the rendered configuration.
func (s *Scope) Patches(path string, patches []spec.Patch) {
	for i, p := range patches {
		at := check.Index(path, i)
		switch {
		case p.Inline == nil && p.File == nil:
			s.Addf(at, "needs inline or file")
		case p.Inline != nil && p.File != nil:
			s.Addf(at, "has both inline and file: keep one")
		case p.Inline != nil && !IsYAML(*p.Inline):
			s.Addf(at+".inline", "is not YAML")
		}
		s.File(at+".file", p.File)
		if p.File != nil && p.Inline == nil && !s.Wrong(at) {
			s.PlainFile(at+".file", *p.File, "write the patch inline, with that value as a secret")
		}
	}
}

// ChartVersion checks that a chart's version is exact.
func (s *Scope) ChartVersion(path string, version *string) {
	if version == nil {
		s.Addf(path, "is required: say which version of the chart to install")

		return
	}
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(*version, "v")); err != nil {
		s.Addf(path, "%q is not an exact version such as 1.18.4", *version)
	}
}

// Positive checks that a length of time is more than none.
func (s *Scope) Positive(path string, d *spec.Duration) {
	if d != nil && *d <= 0 {
		text, _ := d.MarshalText()
		s.Addf(path, "%s is no length of time to wait: write one such as 10m", text)
	}
}

// BlockName checks the name that the user gives a block of settings.
func (s *Scope) BlockName(path, name string) {
	if message := CheckBlockName(name); message != "" {
		s.Addf(path, "%s", message)
	}
}

// File checks a path of a file in the project.
func (s *Scope) File(path string, file *string) {
	if file != nil && !InProject(*file) {
		s.Addf(path, "%q is not a path inside the project: write one relative to the project directory", *file)
	}
}

// CIDRs checks a list of networks and returns those that are.
func (s *Scope) CIDRs(path string, texts []string) []netip.Prefix {
	var all []netip.Prefix
	for i, text := range texts {
		if p, ok := s.CIDR(check.Index(path, i), text); ok {
			all = append(all, p)
		}
	}

	return all
}

// CIDR checks a network: an address and a prefix length, without host bits.
func (s *Scope) CIDR(path, text string) (netip.Prefix, bool) {
	p, err := spec.ParseNetwork(text)
	if err != nil {
		s.Addf(path, "%s", err)

		return p, false
	}
	if p != p.Masked() {
		s.Addf(path, "%q is an address inside a network, not a network: write %s", text, p.Masked())

		return p.Masked(), false
	}

	return p, true
}

// Addresses checks a list of IP addresses.
func (s *Scope) Addresses(path string, texts []string) {
	for i, text := range texts {
		if _, err := spec.ParseAddr(text); err != nil {
			s.Addf(check.Index(path, i), "%s", err)
		}
	}
	s.Twice(path, texts)
}

// Each checks every entry of a list by a form.
func (s *Scope) Each(path string, texts []string, ok func(string) bool, message string) {
	for i, text := range texts {
		if !ok(text) {
			s.Addf(check.Index(path, i), "%q %s", text, message)
		}
	}
}

// KeysMatch checks every key of a map by a form.
func KeysMatch[V any](s *Scope, path string, m map[string]V, ok func(string) bool, message string) {
	for _, key := range SortedKeys(m) {
		if !ok(key) {
			s.Addf(check.Key(path, key), "%q %s", key, message)
		}
	}
}
