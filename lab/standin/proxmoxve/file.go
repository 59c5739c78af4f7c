// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/storage"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func storageFile() *bridge.Resource {
	return &bridge.Resource{
		Args: &storage.FileArgs{}, State: storage.File{},
		Defaults: bridge.Defaults{"overwrite": true, "timeoutUpload": 1800},
		Computed: []string{"contentType", "fileModificationDate", "fileName", "fileSize", "fileTag"},
		Replace: []string{
			"contentType", "datastoreId", "fileMode", "nodeName", "sourceFile", "sourceRaw",
		},
		Validate: func(p *bridge.Problems, in bridge.Tree) {
			r := rules{Problems: p, in: in}
			r.oneOf("contentType", "backup", "dump", "iso", "snippets", "vztmpl")
		},
		Create: createFile,
		Read: func(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
			size, err := fileSize(ctx, op, op.State, op.ID)
			if errors.Is(err, errNoFile) {
				return nil, nil // gone
			}
			return merge(op.State, bridge.Tree{"fileSize": size}), err
		},
		Update: func(context.Context, *bridge.Op) (bridge.Tree, error) { return bridge.Tree{}, nil },
		Delete: func(ctx context.Context, op *bridge.Op) error {
			return deleteVolume(ctx, op, op.State.Str("nodeName"), op.State.Str("datastoreId"))
		},
	}
}

// contentOf guesses the content type from the file's name, as the provider does.
func contentOf(in bridge.Tree, name string) string {
	if c := in.Str("contentType"); c != "" {
		return c
	}

	switch {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tar.xz"):
		return "vztmpl"
	case strings.HasSuffix(name, ".iso"), strings.HasSuffix(name, ".img"):
		return "iso"
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return "snippets"
	}

	return ""
}

func source(ctx context.Context, in bridge.Tree) (name string, data []byte, err error) {
	if in.Has("sourceRaw") {
		return in.Str("sourceRaw.fileName"), []byte(in.Str("sourceRaw.data")), nil
	}

	from := in.Str("sourceFile.path")
	name = in.Str("sourceFile.fileName")
	if name == "" {
		name = path.Base(from)
	}

	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		data, err = os.ReadFile(from)
		return name, data, err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it is only read

	data, err = io.ReadAll(res.Body)

	return name, data, err
}

func createFile(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return "", nil, err
	}

	in := op.In
	if in.Has("sourceFile") == in.Has("sourceRaw") {
		return "", nil, errors.New(`please specify "source_file.path" or "source_raw" - not both`)
	}

	ctx, cancel := context.WithTimeout(ctx, seconds(in, "timeoutUpload"))
	defer cancel()

	name, data, err := source(ctx, in)
	if err != nil {
		return "", nil, fmt.Errorf("reading the source of %s: %w", name, err)
	}

	content := contentOf(in, name)
	switch content {
	case "iso", "vztmpl":
	default:
		return "", nil, fmt.Errorf("uploading %q as %s needs SSH to the host %s, which the lab's hosts do not answer: "+
			"unable to authenticate over SSH", name, or(content, "an unknown content type"), in.Str("nodeName"))
	}

	if err := a.upload(ctx, in.Str("nodeName"), in.Str("datastoreId"), content, name, data); err != nil {
		return "", nil, err
	}

	return in.Str("datastoreId") + ":" + content + "/" + name, bridge.Tree{
		"contentType": content, "fileName": name, "fileSize": len(data),
		"fileModificationDate": time.Now().UTC().Format(time.RFC3339), "fileTag": "",
	}, nil
}

func (a *api) upload(ctx context.Context, node, store, content, name string, data []byte) error {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)

	err := w.WriteField("content", content)
	if err == nil {
		var part io.Writer
		if part, err = w.CreateFormFile("filename", name); err == nil {
			_, err = part.Write(data)
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("encoding the upload of %s: %w", name, err)
	}

	p := "nodes/" + node + "/storage/" + store + "/upload"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+p, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", w.FormDataContentType())

	var upid string
	if err := a.send(req, p, &upid); err != nil {
		return fmt.Errorf("error uploading file to datastore %s: %w", store, err)
	}

	exit, err := a.await(ctx, upid)
	if err == nil && exit != "OK" {
		err = fmt.Errorf("task %q failed to complete with exit code: %s", upid, exit)
	}
	if err != nil {
		return fmt.Errorf("error uploading file to datastore %s: failed waiting for upload - %w", store, err)
	}

	return nil
}
