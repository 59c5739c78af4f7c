// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// serveImages serves a registry with one image, etcd in whatever version is asked for.
func serveImages(address, etcd string) error {
	blobs, manifest, err := etcdImage(etcd)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serving images: %w", err)
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, kind := path.Split(path.Dir(r.URL.Path))
			what := path.Base(r.URL.Path)
			switch {
			case r.URL.Path == "/v2/":
				return
			case path.Base(name) != "etcd":
			case kind == "manifests" && (!strings.HasPrefix(what, "sha256:") || what == digest.FromBytes(manifest).String()):
				w.Header().Set("Content-Type", v1.MediaTypeImageManifest)
				w.Header().Set("Docker-Content-Digest", digest.FromBytes(manifest).String())
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(manifest))

				return
			case kind == "blobs" && blobs[what] != nil:
				w.Header().Set("Content-Type", "application/octet-stream")
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(blobs[what]))

				return
			}
			http.NotFound(w, r)
		}))
	}()

	return nil
}

// etcdImage returns the blobs and the manifest of an image that holds nothing but etcd.
func etcdImage(etcd string) (map[string][]byte, []byte, error) {
	content, err := os.ReadFile(etcd)
	if err != nil {
		return nil, nil, fmt.Errorf("making etcd's image: %w", err)
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	for _, dir := range []string{"usr/", "usr/local/", "usr/local/bin/"} {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}); err != nil {
			return nil, nil, err
		}
	}
	err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "usr/local/bin/etcd", Mode: 0o755, Size: int64(len(content))})
	if err == nil {
		_, err = archive.Write(content)
	}
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("making etcd's image: %w", err)
	}
	blobs := make(map[string][]byte)
	add := func(kind string, content []byte) v1.Descriptor {
		d := digest.FromBytes(content)
		blobs[d.String()] = content

		return v1.Descriptor{MediaType: kind, Digest: d, Size: int64(len(content))}
	}
	layers := []v1.Descriptor{add(v1.MediaTypeImageLayer, layer.Bytes())}
	config, err := json.Marshal(v1.Image{
		Platform: v1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config:   v1.ImageConfig{Entrypoint: []string{"/usr/local/bin/etcd"}},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{layers[0].Digest}},
	})
	if err != nil {
		return nil, nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: add(v1.MediaTypeImageConfig, config), Layers: layers,
	})

	return blobs, manifest, err
}
