// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package scope

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The forms that names and values have to have.
var (
	LabelForm      = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	DomainForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	QualifiedForm  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	TagForm        = regexp.MustCompile(`^[a-z0-9_][a-z0-9_+.-]*$`)
	BridgeForm     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,14}$`)
	PCIAddressForm = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f](\.[0-7])?$`)
	CPUListForm    = regexp.MustCompile(`^[0-9]+(-[0-9]+)?([,;][0-9]+(-[0-9]+)?)*$`)
	SysctlForm     = regexp.MustCompile(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_*:@-]+)+$`)
	ModuleForm     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	FlagForm       = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
	VariableForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	DigestForm     = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
	DatastoreForm  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$`)
	TokenForm      = regexp.MustCompile(`^\S+@\S+!\S+=[a-zA-Z0-9-]+$`)
	HostForm       = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	blockLetter    = regexp.MustCompile(`^[A-Za-z]$`)
	SerialForm     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,20}$`)
)

// IsHostname reports whether text is a name or an address of a machine.
func IsHostname(text string) bool {
	_, err := spec.ParseAddr(text)

	return err == nil || (len(text) <= 253 && DomainForm.MatchString(text) && !numeric(text))
}

// numeric reports whether the last part of a name is a number: what looks so is an address, and none that there is.
func numeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]

	return strings.Contains(name, ".") && strings.Trim(last, "0123456789") == ""
}

// IsQualified reports whether text is a Kubernetes key: a name, or a domain, a slash and a name.
func IsQualified(text string) bool {
	prefix, name, ok := strings.Cut(text, "/")
	if !ok {
		return QualifiedForm.MatchString(text)
	}

	return len(prefix) <= 253 && DomainForm.MatchString(prefix) && QualifiedForm.MatchString(name)
}

// WebURL reads an URL of one of the schemes; it must name a host.
func WebURL(text string, schemes ...string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.ContainsAny(text, " \t\n") {
		return nil, false
	}
	if _, err := spec.ParseAddr(u.Hostname()); err != nil && numeric(u.Hostname()) {
		return nil, false
	}
	for _, s := range schemes {
		if u.Scheme == s {
			return u, ValidPort(u.Port())
		}
	}

	return nil, false
}

// ValidPort reports whether the text is a port, 1 to 65535; an empty one is.
func ValidPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.Atoi(port)

	return err == nil && n >= 1 && n <= 65535
}

// InProject reports whether a path stays inside the project directory.
func InProject(p string) bool {
	clean := path.Clean(p)

	return p != "" && !path.IsAbs(p) && clean != ".." && !strings.HasPrefix(clean, "../")
}

// IsYAMLMap reports whether text is a YAML mapping.
func IsYAMLMap(text spec.Text) bool {
	var m map[string]any

	return yaml.Unmarshal([]byte(text), &m) == nil && m != nil
}

// IsYAML reports whether text is YAML, of one document or more.
func IsYAML(text spec.Text) bool {
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

// CheckBlockName returns what is wrong with the name that a user gives a block of settings, such as a
// network or a size; "" when nothing is.
func CheckBlockName(name string) string {
	if DatastoreForm.MatchString(name) || blockLetter.MatchString(name) {
		return ""
	}

	return fmt.Sprintf("%q is no name: use letters, digits, dashes, dots and underscores, beginning with a letter", name)
}

// IsPrivateKey reports whether text is a private key that can be used without a passphrase.
func IsPrivateKey(text string) bool {
	_, err := ssh.ParseRawPrivateKey([]byte(text))

	return err == nil
}

// SortedKeys returns a map's keys in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// IsLabelValue reports whether text is a value of a Kubernetes label.
func IsLabelValue(text string) bool { return text == "" || QualifiedForm.MatchString(text) }

// TagRule is what a problem says of a tag that Proxmox VE does not take.
const TagRule = "is no Proxmox tag: use lower-case letters, digits, and _ - + . after the first"

// IsCertificate reports whether text is PEM certificates, each of which can be read.
func IsCertificate(text spec.Text) bool {
	rest := []byte(text)
	for some := false; ; some = true {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return some && strings.TrimSpace(string(rest)) == ""
		}
		if block.Type != "CERTIFICATE" {
			return false
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
	}
}

// Functions returns the address of the whole device of which a PCI address names a function.
func Functions(address string) string {
	device, _, _ := strings.Cut(address, ".")

	return device
}

// LastOf returns the last address of a network.
func LastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)

	return a
}

// NotOneOf returns what is wrong with a text that is not among the allowed ones.
func NotOneOf(text string, allowed []string) string {
	message := fmt.Sprintf("%q is not one of %s", text, strings.Join(allowed, ", "))
	if best := check.Nearest(text, allowed); best != "" {
		message += fmt.Sprintf("; did you mean %q?", best)
	}

	return message
}

// NodePath returns the path of a node.
func NodePath(n spec.NamedNode) string { return check.Key("nodes", n.Name) }
