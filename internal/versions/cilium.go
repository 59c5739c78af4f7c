// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package versions

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
)

const (
	// CiliumChart is the version of Cilium's chart when the stack names none.
	CiliumChart = "1.18.4"
	// CiliumCLIImage is the install Job's image when the stack names none.
	CiliumCLIImage = "quay.io/cilium/cilium-cli:v0.18.7"
)

// ciliumStableAPISince is the minor of Cilium 1 whose pools and BGP left their alpha.
const ciliumStableAPISince = 18

// CiliumAPIVersion returns the API version of pools and BGP for a version of Cilium's chart.
func CiliumAPIVersion(chart string) string {
	v, err := semver.NewVersion(chart)
	if err == nil && (v.Major() < 1 || v.Major() == 1 && v.Minor() < ciliumStableAPISince) {
		return "cilium.io/v2alpha1"
	}

	return "cilium.io/v2"
}

// GatewayAPI returns the release of the Gateway API that Cilium's documentation names for a version
// of its chart.
func GatewayAPI(chart string) (string, error) {
	v, err := semver.NewVersion(chart)
	if err != nil {
		return "", fmt.Errorf("%q is not a chart version", chart)
	}
	releases := map[uint64]string{16: "v1.1.0", 17: "v1.2.0", 18: "v1.2.0"}
	release, known := releases[v.Minor()]
	if v.Major() != 1 || !known {
		return "", fmt.Errorf("say which release of the Gateway API fits Cilium %s", chart)
	}

	return release, nil
}
