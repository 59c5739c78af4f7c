// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"fmt"
	"io"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

func (a *api) storage() {
	a.handle("GET /storage", "", func(r *request) (any, error) {
		all := []object{}
		for _, s := range r.cluster.StorageConfigs() {
			all = append(all, storageConfig(s))
		}

		return all, nil
	})
	a.handle("GET /storage/{storage}", "Datastore.Allocate", func(r *request) (any, error) {
		for _, s := range r.cluster.StorageConfigs() {
			if s.ID == r.PathValue("storage") {
				return storageConfig(s), nil
			}
		}

		return nil, fmt.Errorf("storage '%s' does not exist", r.PathValue("storage"))
	})
	a.handle("GET /nodes/{node}/storage", "", storages)
	a.handle("GET /nodes/{node}/storage/{storage}/status", "Datastore.Audit|Datastore.AllocateSpace", func(r *request) (any, error) {
		all, err := r.cluster.Storages(r.PathValue("node"))
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if s.ID == r.PathValue("storage") {
				return storageStatus(s), nil
			}
		}

		return nil, noStorage(r)
	})

	const content = "/nodes/{node}/storage/{storage}/content"
	a.handle("GET "+content, "Datastore.Audit|Datastore.AllocateSpace", func(r *request) (any, error) {
		volumes, err := r.cluster.Content(r.PathValue("node"), r.PathValue("storage"), r.param("content"))
		if err != nil {
			return nil, err
		}
		all := []object{}
		for _, v := range volumes {
			o := object{"volid": v.VolID, "content": v.Content, "format": v.Format, "size": v.Size, "ctime": v.Created}
			if v.VMID != 0 {
				o["vmid"] = v.VMID
			}
			all = append(all, o)
		}

		return all, nil
	})
	a.handle("GET "+content+"/{volume...}", "Datastore.Audit|Datastore.AllocateSpace", func(r *request) (any, error) {
		v, err := r.cluster.Volume(r.PathValue("node"), r.PathValue("storage"), r.PathValue("volume"))
		if err != nil {
			return nil, err
		}

		return object{"path": v.Path, "format": v.Format, "size": v.Size, "used": v.Size}, nil
	})
	a.handle("DELETE "+content+"/{volume...}", "Datastore.Allocate", func(r *request) (any, error) {
		return upid(r.cluster.DeleteVolume(r.PathValue("node"), r.PathValue("storage"), r.PathValue("volume"), r.user))
	})
	a.handle("POST /nodes/{node}/storage/{storage}/download-url", "Datastore.AllocateTemplate", func(r *request) (any, error) {
		if err := r.check(at("/", "Sys.Audit"), at("/", "Sys.Modify")); err != nil {
			return nil, err
		}

		return upid(r.cluster.Download(r.PathValue("node"), site.DownloadRequest{
			Storage: r.PathValue("storage"), Content: r.param("content"), Filename: r.param("filename"), URL: r.param("url"),
			Checksum: r.param("checksum"), ChecksumAlgorithm: r.param("checksum-algorithm"), Compression: r.param("compression"),
		}, r.user))
	})
	a.handle("POST /nodes/{node}/storage/{storage}/upload", "Datastore.AllocateTemplate", upload)
}

// upid makes a task's id the answer.
func upid(id string, err error) (any, error) {
	if err != nil {
		return nil, err
	}

	return id, nil
}

func storageConfig(s site.StorageStatus) object {
	o := object{
		"storage": s.ID, "type": s.Type, "content": strings.Join(s.Content, ","), "shared": bit(s.Shared),
		"digest": "da39a3ee5e6b4b0d3255bfef95601890afd80709",
	}
	if s.Path != "" {
		o["path"] = s.Path
	}
	if len(s.Nodes) > 0 {
		o["nodes"] = strings.Join(s.Nodes, ",")
	}

	return o
}

func storageStatus(s site.StorageStatus) object {
	return object{
		"storage": s.ID, "type": s.Type, "content": strings.Join(s.Content, ","), "shared": bit(s.Shared),
		"active": 1, "enabled": 1, "total": s.SizeBytes, "used": s.Used, "avail": s.SizeBytes - s.Used,
		"used_fraction": float64(s.Used) / float64(s.SizeBytes),
	}
}

func storages(r *request) (any, error) {
	list, err := r.cluster.Storages(r.PathValue("node"))
	if err != nil {
		return nil, err
	}

	all := []object{}
	for _, s := range list {
		if want := r.param("storage"); want != "" && want != s.ID {
			continue
		}
		holds := true
		for _, c := range split(r.param("content")) {
			holds = holds && strings.Contains(","+strings.Join(s.Content, ",")+",", ","+c+",")
		}
		if holds {
			all = append(all, storageStatus(s))
		}
	}

	return all, nil
}

func upload(r *request) (any, error) {
	if err := r.ParseMultipartForm(maxBody); err != nil {
		return nil, fmt.Errorf("reading the upload: %w", err)
	}
	file, header, err := r.FormFile("filename")
	if err != nil {
		return nil, bad("filename", "property is missing and it is not optional")
	}
	defer func() { _ = file.Close() }() // read to its end below

	data, err := io.ReadAll(io.LimitReader(file, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the upload: %w", err)
	}

	return upid(r.cluster.Upload(r.PathValue("node"), r.PathValue("storage"), r.FormValue("content"), header.Filename, data, r.user))
}

// noStorage returns the refusal of a storage that the host has not.
func noStorage(r *request) error {
	for _, s := range r.cluster.StorageConfigs() {
		if s.ID == r.PathValue("storage") {
			return fmt.Errorf("storage '%s' is not available on node '%s'", s.ID, r.PathValue("node"))
		}
	}

	return pve.Invalid("storage", "No such storage.")
}
