// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
)

// Hosts returns the hosts of the repositories packed below dir.
func Hosts(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the chart repositories are missing from %s: run `make tools`", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading chart repositories: %w", err)
	}

	var hosts []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != OCI {
			hosts = append(hosts, e.Name())
		}
	}

	return hosts, nil
}

// Handler serves the repositories packed below dir, each under its host, and under any other host
// below a path that begins with its host, as mirrors do.
func Handler(dir string) http.Handler {
	root := os.DirFS(dir)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		name := strings.TrimPrefix(path.Clean("/"+host+"/"+r.URL.Path), "/")
		if _, err := fs.Stat(root, host); err != nil {
			name = strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		}

		content, err := fs.ReadFile(root, name)
		if err != nil {
			http.NotFound(w, r)

			return
		}
		contentType := "application/gzip"
		if strings.HasSuffix(name, ".yaml") {
			contentType = "text/yaml"
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(content) // the client went away
	})
}
