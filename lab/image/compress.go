// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package image

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Compress packs data as algorithm says: "gz" or "zst". The result depends on data alone.
func Compress(algorithm string, data []byte) ([]byte, error) {
	var out bytes.Buffer

	var (
		w   io.WriteCloser
		err error
	)
	switch algorithm {
	case "gz":
		w, err = gzip.NewWriterLevel(&out, gzip.BestCompression)
	case "zst":
		w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	default:
		return nil, fmt.Errorf("compression %q is not known", algorithm)
	}
	if err != nil {
		return nil, fmt.Errorf("compressing with %s: %w", algorithm, err)
	}

	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("compressing with %s: %w", algorithm, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing with %s: %w", algorithm, err)
	}

	return out.Bytes(), nil
}

// Decompress unpacks data as a Proxmox VE host does: "gz", "zst" or "bz2".
func Decompress(algorithm string, data []byte) ([]byte, error) {
	var r io.Reader

	switch algorithm {
	case "gz":
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("gzip: not in gzip format: %w", err)
		}
		r = z
	case "zst":
		z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("zstd: unsupported format: %w", err)
		}
		defer z.Close()
		r = z
	case "bz2":
		r = bzip2.NewReader(bytes.NewReader(data))
	default:
		return nil, fmt.Errorf("compression %q is not known", algorithm)
	}

	out, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("decompressing with %s: %w", algorithm, err)
	}

	return out, nil
}
