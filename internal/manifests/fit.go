// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// FitsKubernetes returns nil when the chart may be installed in a cluster of that version, "v1.35.0"; else
// the error says what the chart wants.
func FitsKubernetes(c *chart.Chart, kubernetes string) error {
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		return fmt.Errorf("reading the Kubernetes version: %w", err)
	}
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, version.String()) {
		return fmt.Errorf("the chart wants Kubernetes %s, and the cluster has %s: "+
			"choose a version of the chart that fits, or another kubernetes.version", wanted, version)
	}

	return nil
}
