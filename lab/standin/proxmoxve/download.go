// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func downloadFile() *bridge.Resource {
	return &bridge.Resource{
		Args: &download.FileArgs{}, State: download.File{},
		Computed: []string{"fileName", "overwrite", "overwriteUnmanaged", "size", "uploadTimeout", "verify"},
		Replace: []string{
			"checksum", "checksumAlgorithm", "contentType", "datastoreId", "fileName", "nodeName", "url",
		},
		Validate: validateDownload,
		Plan: func(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
			return downloadDefaults(op.In), nil
		},
		Stale:     staleDownload,
		ReplaceIf: func(c bridge.Change, _ *bridge.Op) bool { return c.Output },
		Create:    createDownload,
		Read:      readDownload,
		Update: func(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
			size, err := fileSize(ctx, op, op.In, op.ID)
			if err != nil {
				return nil, fmt.Errorf("Error when reading file from datastore: %w", err) // its text
			}
			return merge(downloadDefaults(op.In), bridge.Tree{"size": size, "fileName": op.State.Str("fileName")}), nil
		},
		Delete: func(ctx context.Context, op *bridge.Op) error {
			return deleteVolume(ctx, op, op.State.Str("nodeName"), op.State.Str("datastoreId"))
		},
	}
}

func validateDownload(p *bridge.Problems, in bridge.Tree) {
	r := rules{Problems: p, in: in}
	r.oneOf("contentType", "iso", "vztmpl")
	r.oneOf("checksumAlgorithm", "md5", "sha1", "sha224", "sha256", "sha384", "sha512")
	r.oneOf("decompressionAlgorithm", "gz", "lzo", "zst", "bz2")

	if v := in.Str("url"); v != "" && !regexp.MustCompile(`^https?://.*`).MatchString(v) {
		r.fail("url", "Invalid Attribute Value Match. Must match http url regex")
	}
	if in.Has("checksumAlgorithm") && !in.Has("checksum") {
		r.fail("checksumAlgorithm", "Invalid Attribute Combination. Attribute \"checksum\" must be specified when "+
			"\"checksum_algorithm\" is specified")
	}
}

// downloadDefaults fills what the program left out.
func downloadDefaults(in bridge.Tree) bridge.Tree {
	out := bridge.Tree{}
	for name, value := range map[string]any{
		"overwrite": true, "overwriteUnmanaged": false, "uploadTimeout": 600, "verify": true,
	} {
		out[name] = value
		if in.Has(name) {
			out[name] = in.At(name)
		}
	}

	return out
}

// staleDownload: what a refresh found in the datastore has not the size that the URL has.
func staleDownload(op *bridge.Op) []string {
	if op.State.Has("size") && op.State.Int("size") < 0 {
		return []string{"size"}
	}

	return nil
}

type urlMetadata struct {
	FileName string `json:"filename"`
	Size     *int64 `json:"size"`
}

func metadata(ctx context.Context, a *api, in bridge.Tree) (urlMetadata, error) {
	verify := merge(downloadDefaults(in)).Bool("verify")

	var m urlMetadata
	err := a.do(ctx, http.MethodGet, "nodes/"+in.Str("nodeName")+"/query-url-metadata",
		url.Values{"url": {in.Str("url")}, "verify-certificates": {bit(verify)}}, &m)
	if err != nil {
		return m, fmt.Errorf("error fetching metadata from download url, "+
			"unexpected error in GetQueryURLMetadata: error retrieving URL metadata for '%s': %w", in.Str("url"), err)
	}

	return m, nil
}

func createDownload(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return "", nil, err
	}

	in := merge(op.In, downloadDefaults(op.In))
	ctx, cancel := context.WithTimeout(ctx, seconds(in, "uploadTimeout"))
	defer cancel()

	meta, err := metadata(ctx, a, in)
	if err != nil {
		return "", nil, fmt.Errorf("Error initiating file download: Could not get file metadata, "+
			"unexpected error: %w", err) // the provider's text
	}

	name := in.Str("fileName")
	if name == "" {
		name = meta.FileName
	}
	id := in.Str("datastoreId") + ":" + in.Str("contentType") + "/" + name

	err = fetch(ctx, a, in, name)
	if refusedOverwrite(err) && in.Bool("overwriteUnmanaged") {
		if err := a.deleteFile(ctx, in.Str("nodeName"), in.Str("datastoreId"), id); err != nil {
			return "", nil, fmt.Errorf("Could not delete file '%s', unexpected error: %w", // its text
				in.Str("contentType")+"/"+name, err)
		}
		err = fetch(ctx, a, in, name)
	}

	switch {
	case refusedOverwrite(err):
		return "", nil, fmt.Errorf("File already exists in the datastore, it was created outside of Terraform or is "+
			"managed by another resource.: File already exists in the datastore: '%s', error: %w",
			name, err) // the provider's text
	case err != nil:
		return "", nil, fmt.Errorf("Error downloading file from url: Could not download file '%s', "+
			"unexpected error: %w", name, err) // the provider's text
	}

	out := merge(downloadDefaults(op.In), bridge.Tree{"fileName": name})
	size, err := fileSize(ctx, op, in, id)
	if err != nil {
		return id, out, fmt.Errorf("Error when reading file from datastore: %w", err) // its text
	}
	out["size"] = size

	return id, out, nil
}

// fetch makes the host download the file. A task that failed is removed from its list.
func fetch(ctx context.Context, a *api, in bridge.Tree, name string) error {
	form := url.Values{
		"content": {in.Str("contentType")}, "filename": {name}, "node": {in.Str("nodeName")},
		"storage": {in.Str("datastoreId")}, "url": {in.Str("url")}, "verify-certificates": {bit(in.Bool("verify"))},
	}
	text("checksum", "checksum")(in, 0, form)
	text("checksumAlgorithm", "checksum-algorithm")(in, 0, form)
	text("decompressionAlgorithm", "compression")(in, 0, form)

	path := "nodes/" + in.Str("nodeName") + "/storage/" + in.Str("datastoreId") + "/download-url"

	var upid string
	if err := a.do(ctx, http.MethodPost, path, form, &upid); err != nil {
		return fmt.Errorf("error download file by URL: %w", err)
	}

	exit, err := a.await(ctx, upid)
	if err == nil && exit == "OK" {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("task %q failed to complete with exit code: %s", upid, exit)
	}

	_ = a.do(context.WithoutCancel(ctx), http.MethodDelete,
		"nodes/"+nodeOf(upid)+"/tasks/"+url.PathEscape(upid), nil, nil) // it may have ended by itself

	return fmt.Errorf("error download file to datastore %s: failed waiting for url download: %w", in.Str("datastoreId"), err)
}

func refusedOverwrite(err error) bool {
	return err != nil && strings.Contains(err.Error(), "refusing to override existing file")
}

var errNoFile = errors.New("file does not exists in datastore")

// fileSize finds a file in its datastore.
func fileSize(ctx context.Context, op *bridge.Op, in bridge.Tree, id string) (int, error) {
	a, err := apiOf(op)
	if err != nil {
		return 0, err
	}

	var files []struct {
		VolID string `json:"volid"`
		Size  int    `json:"size"`
	}
	path := "nodes/" + in.Str("nodeName") + "/storage/" + in.Str("datastoreId") + "/content"
	if err := a.get(ctx, path, &files); err != nil {
		return 0, fmt.Errorf("unexpected error when listing datastore files: %w", err)
	}

	for _, f := range files {
		if f.VolID == id {
			return f.Size, nil
		}
	}

	return 0, errNoFile
}

// readDownload drops a file that is gone; with overwrite it compares sizes with the URL.
func readDownload(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	size, err := fileSize(ctx, op, op.State, op.ID)
	if err != nil {
		if strings.Contains(err.Error(), "failed to authenticate") {
			return nil, err
		}
		op.Warn("The file does not exist in datastore and resource must be recreated.: %s", err)
		return nil, nil // gone
	}

	out := merge(op.State, bridge.Tree{"size": size})
	if !op.State.Bool("overwrite") {
		return out, nil
	}

	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}
	meta, err := metadata(ctx, a, op.State)
	if err != nil {
		return nil, fmt.Errorf("Could not get file metadata from url.: %w", err) // its text
	}
	if meta.Size != nil && int(*meta.Size) != size {
		op.Warn("The file size in datastore outside of terraform has been changed.: "+
			"Previous size %d saved in datastore differs from the size %d that the URL tells", size, *meta.Size)
		out["size"] = -1 // marks it for replacement
	}

	return out, nil
}

func deleteVolume(ctx context.Context, op *bridge.Op, node, store string) error {
	a, err := apiOf(op)
	if err != nil {
		return err
	}

	err = a.deleteFile(ctx, node, store, op.ID)
	if err != nil && strings.Contains(err.Error(), "unable to parse") {
		op.Warn("Could not delete datastore file '%s', it does not exist or has been deleted outside of Terraform.", op.ID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("Error deleting datastore file: Could not delete datastore file '%s', unexpected error: %w",
			op.ID, err) // the provider's text
	}

	return nil
}

// deleteFile succeeds when the file is gone.
func (a *api) deleteFile(ctx context.Context, node, store, id string) error {
	err := a.run(ctx, http.MethodDelete, "nodes/"+node+"/storage/"+store+"/content/"+url.PathEscape(id), nil)
	if errors.Is(err, errNotFound) {
		return nil
	}

	return err
}
