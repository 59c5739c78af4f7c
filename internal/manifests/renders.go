// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"helm.sh/helm/v3/pkg/chart"
)

// Renders keeps what charts were rendered to, so that a run renders a chart once with the same values. Its zero value
// is ready to use.
type Renders struct {
	mu    sync.Mutex
	texts map[[sha256.Size]byte]string
	count map[string]int
}

// Count returns how often a release was rendered.
func (r *Renders) Count(release string) int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.count[release]
}

// render returns what the chart renders to. A nil receiver keeps nothing.
func (r *Renders) render(c *chart.Chart, as Release) (string, error) {
	if r == nil {
		return render(c, as)
	}
	said, err := json.Marshal(struct {
		Chart, Version string
		Release        Release
	}{c.Name(), c.Metadata.Version, as})
	if err != nil {
		return "", fmt.Errorf("rendering chart %s: %w", c.Name(), err)
	}
	key := sha256.Sum256(said)
	r.mu.Lock()
	defer r.mu.Unlock()
	if text, known := r.texts[key]; known {
		return text, nil
	}
	text, err := render(c, as)
	if err != nil {
		return "", err
	}
	if r.texts == nil {
		r.texts, r.count = map[[sha256.Size]byte]string{}, map[string]int{}
	}
	r.texts[key] = text
	r.count[as.Name]++

	return text, nil
}
