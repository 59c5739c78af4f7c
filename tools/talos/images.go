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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// image describes an image: one program, in /usr/local/bin, and the names under which it is started.
type image struct{ name, program, runs string }

// images lists what the nodes pull, by the last part of its name, in whatever version is asked for.
func images(binaries, self string) []image {
	in := func(name string) string { return filepath.Join(binaries, name) }

	return []image{
		{"etcd", in("etcd"), "etcd"},
		{"kubelet", in("hyperkube"), "kubelet"},
		{"kube-apiserver", in("hyperkube"), "kube-apiserver"},
		{"kube-controller-manager", in("hyperkube"), "kube-controller-manager"},
		{"kube-scheduler", in("hyperkube"), "kube-scheduler"},
		{"pause", self, "pause"},
		{"cni", self, "cni"},
		{"web", self, "web"},
	}
}

// aliases lists the other names of a program in its image.
var aliases = map[string][]string{
	"hyperkube":   {"kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "mount", "umount"},
	"talos-nodes": {"pause", "cni", "web"},
}

// registry holds images: manifests by their image's name, blobs by their digest.
type registry struct {
	manifests map[string][]byte
	blobs     map[string][]byte
	layers    map[string]v1.Descriptor // by program
}

// serveImages serves a registry of images.
func serveImages(address string, all []image) error {
	r := &registry{manifests: make(map[string][]byte), blobs: make(map[string][]byte), layers: make(map[string]v1.Descriptor)}
	for _, i := range all {
		if err := r.add(i); err != nil {
			return fmt.Errorf("making the image %s: %w", i.name, err)
		}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serving images: %w", err)
	}
	go func() { _ = http.Serve(listener, r) }()

	return nil
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, kind := path.Split(path.Dir(req.URL.Path))
	what := path.Base(req.URL.Path)
	content, media := r.blobs[what], "application/octet-stream"
	if kind == "manifests" {
		content, media = r.manifests[path.Base(name)], v1.MediaTypeImageManifest
		if strings.HasPrefix(what, "sha256:") && what != digest.FromBytes(content).String() {
			content = nil
		}
	}
	if req.URL.Path == "/v2/" {
		return
	}
	if content == nil {
		http.NotFound(w, req)

		return
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(content).String())
	http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(content))
}

// add makes an image that holds nothing but its program.
func (r *registry) add(i image) error {
	layer, err := r.layer(i.program)
	if err != nil {
		return err
	}
	config, err := json.Marshal(v1.Image{
		Platform: v1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config:   v1.ImageConfig{Entrypoint: []string{"/usr/local/bin/" + i.runs}, Env: []string{"PATH=/usr/local/bin"}},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer.Digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: r.blob(v1.MediaTypeImageConfig, config), Layers: []v1.Descriptor{layer},
	})
	r.manifests[i.name] = manifest

	return err
}

func (r *registry) blob(kind string, content []byte) v1.Descriptor {
	d := digest.FromBytes(content)
	r.blobs[d.String()] = content

	return v1.Descriptor{MediaType: kind, Digest: d, Size: int64(len(content))}
}

// layer returns the layer with a program and its other names; images of one program share it.
func (r *registry) layer(program string) (v1.Descriptor, error) {
	if made, ok := r.layers[program]; ok {
		return made, nil
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return v1.Descriptor{}, err
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	headers := []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, {Typeflag: tar.TypeDir, Name: "usr/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "usr/local/", Mode: 0o755}, {Typeflag: tar.TypeDir, Name: "usr/local/bin/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "run/", Mode: 0o755}, {Typeflag: tar.TypeDir, Name: "var/", Mode: 0o755},
		{Typeflag: tar.TypeSymlink, Name: "var/run", Linkname: "/run", Mode: 0o777}, // as everywhere; a kubelet gets the node's there
	}
	for _, alias := range slices.Sorted(slices.Values(aliases[filepath.Base(program)])) {
		headers = append(headers, &tar.Header{
			Typeflag: tar.TypeSymlink, Name: "usr/local/bin/" + alias, Linkname: filepath.Base(program), Mode: 0o777,
		})
	}
	headers = append(headers, &tar.Header{
		Typeflag: tar.TypeReg, Name: "usr/local/bin/" + filepath.Base(program), Mode: 0o755, Size: int64(len(content)),
	})
	for _, h := range headers {
		if err := archive.WriteHeader(h); err != nil {
			return v1.Descriptor{}, err
		}
	}
	if _, err = archive.Write(content); err == nil {
		err = archive.Close()
	}
	made := r.blob(v1.MediaTypeImageLayer, layer.Bytes())
	r.layers[program] = made

	return made, err
}
