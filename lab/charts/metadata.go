// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// metadataOf reads a packed chart as Helm does, which also proves that it is one.
func metadataOf(packed []byte) (*chart.Metadata, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("loading a chart: %w", err)
	}
	if err := loaded.Validate(); err != nil {
		return nil, fmt.Errorf("chart %s: %w", loaded.Name(), err)
	}

	return loaded.Metadata, nil
}
