// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Find returns a chart's archive from the repositories packed below dir, as who fetches from the
// repository would get it, through a mirror too. The error is Helm's where there is no such chart.
func Find(dir, repository, name, version string) ([]byte, error) {
	u, err := url.Parse(repository)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("could not find protocol handler for: %s", repository)
	}
	file := name + "-" + version + ".tgz"
	if u.Scheme == OCI {
		for _, found := range packedCharts(dir, filepath.ToSlash(filepath.Clean("."+u.Path)), name) {
			if filepath.Base(found) == file {
				return os.ReadFile(found) // the lab's own charts
			}
		}

		return nil, fmt.Errorf("%s/%s:%s: not found", u.Host+u.Path, name, version)
	}
	for _, at := range []string{u.Host + u.Path, u.Path} {
		// the lab's own charts
		if archive, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(at), file)); err == nil {
			return archive, nil
		}
	}

	return nil, fmt.Errorf("chart %q version %q not found in %s repository", name, version, repository)
}
