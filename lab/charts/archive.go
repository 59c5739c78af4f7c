// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// archive packs the files of a chart, by path in it. The same files give the same bytes.
func archive(name string, files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)

	for _, path := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{
			Name: name + "/" + path, Mode: 0o644, Size: int64(len(files[path])), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}
		if err := packed.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", path, err)
		}
		if _, err := packed.Write(files[path]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", path, err)
		}
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("packing chart %s: %w", name, err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("packing chart %s: %w", name, err)
	}

	return out.Bytes(), nil
}

// tree reads every file below a directory, by slash-separated path.
func tree(dir fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path], err = fs.ReadFile(dir, path)

		return err
	})

	return files, err
}
