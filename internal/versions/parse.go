// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Talos is a version of Talos Linux.
type Talos struct{ version *semver.Version }

// Kubernetes is a version of Kubernetes.
type Kubernetes struct{ version *semver.Version }

// ParseTalos reads "v1.12.4" or "1.12.4"; pre-releases ("v1.12.0-beta.1") are versions too.
func ParseTalos(text string) (Talos, error) {
	v, err := parse("Talos", text, "v1.12.4")

	return Talos{version: v}, err
}

// ParseKubernetes reads "v1.35.0" or "1.35.0".
func ParseKubernetes(text string) (Kubernetes, error) {
	v, err := parse("Kubernetes", text, "v1.35.0")

	return Kubernetes{version: v}, err
}

// preRelease is what follows the three numbers of a version that comes before a release.
var preRelease = regexp.MustCompile(`^(alpha|beta|rc)\.[0-9]+$`)

// parse demands all three numbers: an image tag needs them.
func parse(what, text, example string) (*semver.Version, error) {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	if err != nil {
		return nil, fmt.Errorf("%q is not a %s version: write all three numbers, such as %q", text, what, example)
	}
	if v.Metadata() != "" || v.Prerelease() != "" && !preRelease.MatchString(v.Prerelease()) {
		return nil, fmt.Errorf("%q is not a %s version that was released: write one such as %q, or a pre-release such as v%d.%d.0-rc.1",
			text, what, example, v.Major(), v.Minor())
	}

	return v, nil
}

// String returns the version with a leading v, "v1.12.4".
func (t Talos) String() string { return "v" + t.version.String() }

// Contract returns the minor version whose configuration forms this version introduced.
func (t Talos) Contract() Contract {
	return Contract{Major: int(t.version.Major()), Minor: int(t.version.Minor())}
}

// Compare returns a negative number when t is older than other, zero when equal, positive when newer.
func (t Talos) Compare(other Talos) int { return t.version.Compare(other.version) }

// String returns the version with a leading v, "v1.35.0".
func (k Kubernetes) String() string { return "v" + k.version.String() }

// Bare returns the version without a leading v, "1.35.0", as image tags are built from it.
func (k Kubernetes) Bare() string { return k.version.String() }

// Minor returns the minor version, "v1.35".
func (k Kubernetes) Minor() string {
	return fmt.Sprintf("v%d.%d", k.version.Major(), k.version.Minor())
}

// Compare returns a negative number when k is older than other, zero when equal, positive when newer.
func (k Kubernetes) Compare(other Kubernetes) int { return k.version.Compare(other.version) }

// MinorOf returns a version cut to its minor: "v1.12.4" is "v1.12". What is no version stays as it is.
func MinorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return version
	}

	return parts[0] + "." + parts[1]
}
