// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site_test

import (
	"testing"

	"github.com/talos-proxmox/talos-proxmox/lab/site"
)

func TestDownloads(t *testing.T) {
	t.Parallel()
	l := open(t)

	ask := func(change func(*site.DownloadRequest)) site.DownloadRequest {
		r := site.DownloadRequest{Storage: "local", Content: "iso", Filename: "talos.iso", URL: l.url}
		change(&r)

		return r
	}
	for name, c := range map[string]struct {
		request site.DownloadRequest
		want    string
	}{
		"not found": {
			ask(func(r *site.DownloadRequest) { r.URL += "x" }),
			"download failed: server answered '404 Not Found' for " + l.url + "x",
		},
		"checksum": {
			ask(func(r *site.DownloadRequest) { r.Checksum, r.ChecksumAlgorithm = "00", "md5" }),
			"checksum mismatch: got 'f5c3e0eb6dd1f3a55d9855c9769ff6ea' != expect '00'",
		},
		"extension": {
			ask(func(r *site.DownloadRequest) { r.Filename = "talos.raw" }),
			"Parameter verification failed. (filename: wrong file extension)",
		},
		"content type": {
			ask(func(r *site.DownloadRequest) { r.Storage = "local-lvm" }),
			"storage 'local-lvm' is not configured for content-type 'iso'",
		},
		"not compressed": {
			ask(func(r *site.DownloadRequest) { r.Compression = "gz" }),
			"decompression failed: gzip: not in gzip format: gzip: invalid header",
		},
		"xz": {
			ask(func(r *site.DownloadRequest) { r.Compression = "xz" }),
			"Parameter verification failed. (compression: value 'xz' does not match the regex pattern)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			upid, err := l.Download(host, c.request, root)
			l.fails(c.want, upid, err)
		})
	}

	l.download(host, "local")
	upid, err := l.Download(host, ask(func(*site.DownloadRequest) {}), root)
	l.fails("refusing to override existing file '/var/lib/vz/template/iso/talos.iso'", upid, err)
}
