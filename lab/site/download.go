// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"context"
	"crypto/md5"  // G501: what the API offers
	"crypto/sha1" // G505: what the API offers
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"mime"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/image"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

// maxDownload bounds what a host downloads: the lab's images are small.
const maxDownload = 1 << 28

// URLMetadata holds what a server says about a file.
type URLMetadata struct {
	Filename string
	Mimetype string
	Size     int64 // bytes; -1 when the server does not say
}

// QueryURL asks for the metadata of a URL from a host.
func (c *Cluster) QueryURL(ctx context.Context, host, url string) (URLMetadata, error) {
	if err := c.CheckHost(host); err != nil {
		return URLMetadata{}, err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return URLMetadata{}, pve.Invalid("url", "invalid url '%s'", url)
	}

	res, err := c.s.opts.HTTP.Do(req)
	if err != nil {
		return URLMetadata{}, pve.Errorf("invalid server response: '500 Can't connect to %s (%s)'", req.URL.Host, rootCause(err))
	}
	defer func() { _ = res.Body.Close() }() // nothing was read

	if res.StatusCode != http.StatusOK {
		return URLMetadata{}, pve.Errorf("invalid server response: '%s'", res.Status)
	}

	m := URLMetadata{Filename: path.Base(req.URL.Path), Mimetype: res.Header.Get("Content-Type"), Size: res.ContentLength}
	if _, params, err := mime.ParseMediaType(res.Header.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		m.Filename = params["filename"]
	}

	return m, nil
}

func rootCause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// DownloadRequest describes a download-url call.
type DownloadRequest struct {
	Storage  string
	Content  string // "iso", "vztmpl"
	Filename string
	URL      string
	// Checksum of the bytes as downloaded; both or neither.
	Checksum, ChecksumAlgorithm string
	// Compression to undo: "", "gz", "lzo", "zst", "bz2".
	Compression string
}

// Download fetches a URL onto a storage and returns the task's UPID.
func (c *Cluster) Download(host string, r DownloadRequest, user string) (string, error) {
	c.s.mu.Lock()
	h, d, err := c.storage(host, r.Storage)
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := checkFile(d, r.Content, r.Filename); err != nil {
		return "", err
	}
	switch {
	case (r.Checksum == "") != (r.ChecksumAlgorithm == ""):
		return "", pve.Invalid("checksum", "checksum and checksum-algorithm go together")
	case r.ChecksumAlgorithm != "" && newHash(r.ChecksumAlgorithm) == nil:
		return "", pve.Invalid("checksum-algorithm",
			"value '%s' does not have a value in the enumeration 'md5, sha1, sha224, sha256, sha384, sha512'", r.ChecksumAlgorithm)
	case r.Compression != "" && !compressions.MatchString(r.Compression):
		return "", pve.Invalid("compression", "value '%s' does not match the regex pattern", r.Compression)
	}

	return c.s.spawn(h.Name, "download", r.Filename, user, func(ctx context.Context, say sayf) error {
		say("downloading %s to %s", r.URL, d.path()+"/template/"+r.Content+"/"+r.Filename)
		data, err := c.fetch(ctx, h.Name, r, say)
		if err != nil {
			return err
		}

		return c.keep(h.Name, d, r.Content, r.Filename, data, r.Compression)
	}), nil
}

var (
	compressions = regexp.MustCompile(`^(gz|lzo|zst|bz2)$`)
	isoName      = regexp.MustCompile(`(?i)\.(iso|img)$`)
	templateName = regexp.MustCompile(`\.tar\.(gz|xz|zst|bz2)$`)
	fileName     = regexp.MustCompile(`^[\w.+=@~-]+$`)
)

// checkFile refuses what a storage does not hold under that name.
func checkFile(d StorageDef, content, name string) error {
	switch {
	case content != "iso" && content != "vztmpl" && content != "snippets":
		return pve.Invalid("content", "value '%s' does not have a value in the enumeration 'iso, vztmpl'", content)
	case !d.holds(content):
		return pve.Errorf("storage '%s' is not configured for content-type '%s'", d.ID, content)
	case !d.fileBased():
		return pve.Errorf("can't upload to storage type '%s', not a file based storage!", d.Type)
	case name == "" || !fileName.MatchString(name):
		return pve.Invalid("filename", "invalid filename or wrong extension")
	case content == "iso" && !isoName.MatchString(name), content == "vztmpl" && !templateName.MatchString(name):
		return pve.Invalid("filename", "wrong file extension")
	}

	return nil
}

func (c *Cluster) fetch(ctx context.Context, host string, r DownloadRequest, say sayf) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return nil, fmt.Errorf("download failed: %w", err)
	}
	res, err := c.s.opts.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download failed: %s", rootCause(err))
	}
	defer func() { _ = res.Body.Close() }() // the read below tells

	if res.StatusCode != http.StatusOK {
		say("ERROR %s.", res.Status)

		return nil, fmt.Errorf("download failed: server answered '%s' for %s", res.Status, r.URL)
	}

	if err := c.s.opts.Clock.Take(ctx, guest.StepDownload, host, 0); err != nil {
		return nil, fmt.Errorf("download failed: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxDownload))
	if err != nil {
		return nil, fmt.Errorf("download failed: %w", err)
	}
	if data, err = c.s.damage(host, r.Filename, data, say); err != nil {
		return nil, err
	}

	if r.ChecksumAlgorithm != "" {
		h := newHash(r.ChecksumAlgorithm)
		_, _ = h.Write(data) // never fails
		got := hex.EncodeToString(h.Sum(nil))
		if !strings.EqualFold(got, r.Checksum) {
			return nil, fmt.Errorf("checksum mismatch: got '%s' != expect '%s'", got, r.Checksum)
		}
		say("OK, checksum verified")
	}

	return data, nil
}

func newHash(algorithm string) hash.Hash {
	switch algorithm {
	case "md5":
		return md5.New() // G401: what the API offers
	case "sha1":
		return sha1.New() // G401: what the API offers
	case "sha224":
		return sha256.New224()
	case "sha256":
		return sha256.New()
	case "sha384":
		return sha512.New384()
	case "sha512":
		return sha512.New()
	}

	return nil
}

// Upload puts a file onto a storage and returns the task's UPID.
func (c *Cluster) Upload(host, storage, content, name string, data []byte, user string) (string, error) {
	c.s.mu.Lock()
	h, d, err := c.storage(host, storage)
	c.s.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := checkFile(d, content, name); err != nil {
		return "", err
	}

	return c.s.spawn(h.Name, "imgcopy", "", user, func(context.Context, sayf) error {
		c.s.mu.Lock()
		if v, err := c.volume(h.Name, d.ID+":"+content+"/"+name); err == nil {
			if err := c.free(v); err != nil {
				c.s.mu.Unlock()

				return err
			}
		}
		c.s.mu.Unlock()

		return c.keep(h.Name, d, content, name, data, "")
	}), nil
}

// keep stores a file, decompressed when asked. It never overwrites.
func (c *Cluster) keep(host string, d StorageDef, content, name string, data []byte, compression string) error {
	if compression != "" {
		var err error
		if data, err = image.Decompress(compression, data); err != nil {
			return fmt.Errorf("decompression failed: %w", err)
		}
	}

	c.s.mu.Lock()
	defer c.s.mu.Unlock()

	vol := volume{Name: content + "/" + name, Content: content, Format: formatOf(content, name), Size: int64(len(data))}
	if have, ok := c.c.Volumes[volumeKey(d, host, vol.Name)]; ok {
		return fmt.Errorf("refusing to override existing file '%s'", info(d, have).Path)
	}
	if c.c.used(d, host)+vol.Size > d.SizeBytes || c.s.full(host, d) {
		return fmt.Errorf("write failed: No space left on device")
	}

	v := c.add(d, host, vol)
	if err := writeFile(c.file(v), data); err != nil {
		return err
	}

	return c.s.save()
}

func formatOf(content, name string) string {
	switch content {
	case "iso":
		return "iso"
	case "vztmpl":
		return "t" + strings.TrimPrefix(path.Ext(name), ".")
	}

	return "snippet"
}

func (c *Cluster) read(v *volume) ([]byte, error) {
	data, err := os.ReadFile(c.file(v))
	if err != nil {
		return nil, fmt.Errorf("reading volume %s: %w", v.id(), err)
	}

	return data, nil
}
