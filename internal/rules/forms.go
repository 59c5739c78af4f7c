// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rules

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"gopkg.in/yaml.v3"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The forms that names and values have to have.
var (
	labelForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	domainForm    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	qualifiedForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	tagForm       = regexp.MustCompile(`^[a-z0-9_][a-z0-9_+.-]*$`)
	bridgeForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,14}$`)
	bdfForm       = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
	cpuListForm   = regexp.MustCompile(`^[0-9]+(-[0-9]+)?([,;][0-9]+(-[0-9]+)?)*$`)
	sysctlForm    = regexp.MustCompile(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_*:@-]+)+$`)
	moduleForm    = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	flagForm      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	variableForm  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	digestForm    = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
	datastoreForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`)
	blockLetter   = regexp.MustCompile(`^[A-Za-z]$`)
	serialForm    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,20}$`)
)

// hostname says whether text is a name or an address of a machine.
func hostname(text string) bool {
	_, err := netip.ParseAddr(text)

	return err == nil || (len(text) <= 253 && domainForm.MatchString(text))
}

// qualified says whether text is a Kubernetes key: a name, or a domain, a slash and a name.
func qualified(text string) bool {
	prefix, name, ok := strings.Cut(text, "/")
	if !ok {
		return qualifiedForm.MatchString(text)
	}

	return len(prefix) <= 253 && domainForm.MatchString(prefix) && qualifiedForm.MatchString(name)
}

// webURL reads an URL of one of the schemes; it must name a host.
func webURL(text string, schemes ...string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.ContainsAny(text, " \t\n") {
		return nil, false
	}
	for _, s := range schemes {
		if u.Scheme == s {
			return u, validPort(u.Port())
		}
	}

	return nil, false
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.Atoi(port)

	return err == nil && n >= 1 && n <= 65535
}

// inProject says whether a path stays inside the project directory.
func inProject(p string) bool {
	clean := path.Clean(p)

	return p != "" && !path.IsAbs(p) && clean != ".." && !strings.HasPrefix(clean, "../")
}

// isYAMLMap says whether text is a YAML mapping.
func isYAMLMap(text spec.Text) bool {
	var m map[string]any

	return yaml.Unmarshal([]byte(text), &m) == nil && m != nil
}

// isYAML says whether text is YAML, of one document or more.
func isYAML(text spec.Text) bool {
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	some := false
	for {
		var v any
		switch err := decoder.Decode(&v); {
		case err == nil:
			some = some || v != nil
		case err.Error() == "EOF":
			return some
		default:
			return false
		}
	}
}

// blockName checks the name that the user gives a block of settings.
func (r *rules) blockName(path, name string) {
	if message := CheckBlockName(name); message != "" {
		r.l.Addf(path, "%s", message)
	}
}

// CheckBlockName says what is wrong with the name that a user gives a block of settings, such as a
// network or a size; "" when nothing is.
func CheckBlockName(name string) string {
	if datastoreForm.MatchString(name) || blockLetter.MatchString(name) {
		return ""
	}

	return fmt.Sprintf("%q is no name: use letters, digits, dashes, dots and underscores, beginning with a letter", name)
}

// file checks a path of a file in the project.
func (r *rules) file(path string, file *string) {
	if file != nil && !inProject(*file) {
		r.l.Addf(path, "%q is not a path inside the project: write one relative to the project directory", *file)
	}
}

// cidrs checks a list of networks and returns those that are.
func (r *rules) cidrs(path string, texts []string) []netip.Prefix {
	var all []netip.Prefix
	for i, text := range texts {
		if p, ok := r.cidr(check.Index(path, i), text); ok {
			all = append(all, p)
		}
	}

	return all
}

// cidr checks a network: an address and a prefix length, without host bits.
func (r *rules) cidr(path, text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		r.l.Addf(path, "%q is not a network such as 10.0.0.0/24", text)

		return p, false
	}
	if p != p.Masked() {
		r.l.Addf(path, "%q is an address inside a network, not a network: write %s", text, p.Masked())

		return p.Masked(), false
	}

	return p, true
}

// addresses checks a list of IP addresses.
func (r *rules) addresses(path string, texts []string) {
	for i, text := range texts {
		if _, err := netip.ParseAddr(text); err != nil {
			r.l.Addf(check.Index(path, i), "%q is not an IP address", text)
		}
	}
}

// each checks every entry of a list by a form.
func (r *rules) each(path string, texts []string, ok func(string) bool, message string) {
	for i, text := range texts {
		if !ok(text) {
			r.l.Addf(check.Index(path, i), "%q %s", text, message)
		}
	}
}

// keys checks every key of a map by a form.
func keysMatch[V any](r *rules, path string, m map[string]V, ok func(string) bool, message string) {
	for _, key := range sortedKeys(m) {
		if !ok(key) {
			r.l.Addf(check.Key(path, key), "%q %s", key, message)
		}
	}
}

// isPrivateKey says whether text is a private key that can be used without a passphrase.
func isPrivateKey(text string) bool {
	_, err := ssh.ParseRawPrivateKey([]byte(text))

	return err == nil
}

// sortedKeys returns a map's keys in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
