// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// DefaultCacheDir is where chart archives are kept, relative to the project directory.
const DefaultCacheDir = ".cache/charts"

// CacheDirEnv names another directory for chart archives; a path in it is relative to the project.
const CacheDirEnv = "TALOS_PROXMOX_CHART_CACHE"

// FillCommand fills the cache.
const FillCommand = "tpx charts"

// Cache keeps chart archives, so that plans need no network.
type Cache struct {
	// Dir holds the archives.
	Dir string
	// ProjectDir is what a repository that is a path is relative to.
	ProjectDir string
	// Fetch gets an archive that is not there; nil where the network must not be used.
	Fetch func(context.Context, spec.Chart) ([]byte, error)
	// Lock holds the digests that archives must have.
	Lock Lock
}

// ProjectCache returns the cache of the project in a directory. fetch gets what is not there; nil where the
// network must not be used.
func ProjectCache(project string, fetch func(context.Context, spec.Chart) ([]byte, error)) Cache {
	dir := os.Getenv(CacheDirEnv)
	if dir == "" {
		dir = DefaultCacheDir
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(project, dir)
	}

	return Cache{Dir: dir, ProjectDir: project, Fetch: fetch, Lock: projectLock(project)}
}

// Reference returns the path of a chart for Helm, loaded and checked as [Cache.Load] does: relative to the
// project where it is inside, so that it is the same on every machine.
func (c Cache) Reference(ctx context.Context, ch spec.Chart) (string, error) {
	if _, err := c.Load(ctx, ch); err != nil {
		return "", err
	}
	path, local := c.localPath(ch)
	if !local {
		path = c.Path(ch)
	}
	if inside, err := filepath.Rel(c.ProjectDir, path); err == nil && filepath.IsLocal(inside) {
		// With the dot Helm takes it for no repository's name.
		path = "." + string(filepath.Separator) + inside
	}

	return path, nil
}

// ErrNotCached reports that a chart is not in the cache, where nothing may be fetched.
var ErrNotCached = errors.New("is not in the cache")

// Load returns a chart: from its path, else from the cache, which is filled on demand where it may
// be. The archive must have the chart's digest, where one is given.
func (c Cache) Load(ctx context.Context, ch spec.Chart) (*chart.Chart, error) {
	if err := complete(ch); err != nil {
		return nil, err
	}
	if path, local := c.localPath(ch); local {
		loaded, err := loader.Load(path)
		if err != nil {
			return nil, fmt.Errorf("reading chart %s: %w", spec.Value(ch.Repository), withoutDir(err, c.ProjectDir))
		}

		return loaded, versionFits(loaded, ch)
	}
	archive, err := c.archive(ctx, ch)
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("reading %s from the cache: %w", describe(ch), err)
	}

	return loaded, versionFits(loaded, ch)
}

// Digest returns the digest of the archive that the cache holds, "sha256:…".
func (c Cache) Digest(ch spec.Chart) (string, error) {
	archive, err := os.ReadFile(c.Path(ch))
	if err != nil {
		return "", fmt.Errorf("reading %s from the cache: %w", describe(ch), err)
	}

	return digestOf(archive), nil
}

// Path returns where the chart's archive is kept; the repository is part of the name, since two may have
// charts of the same name and version.
func (c Cache) Path(ch spec.Chart) string {
	sum := sha256.Sum256([]byte(strings.TrimRight(spec.Value(ch.Repository), "/")))

	return filepath.Join(c.Dir, fmt.Sprintf("%s-%s-%x.tgz", spec.Value(ch.Name), spec.Value(ch.Version), sum[:4]))
}

// archive returns the chart's archive, checked.
func (c Cache) archive(ctx context.Context, ch spec.Chart) ([]byte, error) {
	archive, err := os.ReadFile(c.Path(ch))
	if err == nil {
		return archive, c.digestFits(archive, ch)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s from the cache: %w", describe(ch), err)
	}
	if c.Fetch == nil {
		return nil, fmt.Errorf("%s %w: run `%s` where there is network", describe(ch), ErrNotCached, FillCommand)
	}
	archive, err = c.Fetch(ctx, ch)
	if err != nil {
		return nil, fmt.Errorf("%s is not in the cache and cannot be fetched: run `%s` where there is network: %w",
			describe(ch), FillCommand, err)
	}
	if err := c.digestFits(archive, ch); err != nil {
		return nil, err
	}

	return archive, c.store(ch, archive)
}

// store writes the archive in one step, so that no reader sees half of it.
func (c Cache) store(ch spec.Chart, archive []byte) error {
	if err := os.MkdirAll(c.Dir, 0o750); err != nil {
		return fmt.Errorf("keeping %s: %w", describe(ch), err)
	}
	file, err := os.CreateTemp(c.Dir, ".fetch-*")
	if err != nil {
		return fmt.Errorf("keeping %s: %w", describe(ch), err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // gone once it was renamed
	_, errWrite := file.Write(archive)
	if err := errors.Join(errWrite, file.Close()); err != nil {
		return fmt.Errorf("keeping %s: %w", describe(ch), err)
	}
	if err := os.Rename(file.Name(), c.Path(ch)); err != nil {
		return fmt.Errorf("keeping %s: %w", describe(ch), err)
	}

	return nil
}

// localPath returns the chart's path where its repository is one.
func (c Cache) localPath(ch spec.Chart) (string, bool) {
	repository := spec.Value(ch.Repository)
	if strings.Contains(repository, "://") {
		return "", false
	}
	path := repository
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.ProjectDir, path)
	}
	if name := spec.Value(ch.Name); name != "" {
		if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err != nil && !strings.HasSuffix(path, ".tgz") {
			path = filepath.Join(path, name)
		}
	}

	return path, true
}

// complete says what a chart lacks to be found.
func complete(ch spec.Chart) error {
	repository := spec.Value(ch.Repository)
	switch {
	case repository == "":
		return errors.New("the chart has no repository")
	case strings.Contains(repository, "://") && spec.Value(ch.Name) == "":
		return errors.New("the chart has no name")
	case strings.Contains(repository, "://") && spec.Value(ch.Version) == "":
		return fmt.Errorf("chart %s has no version", *ch.Name)
	}

	return nil
}

// describe returns "chart cilium 1.18.4 (sha256:…) of https://helm.cilium.io", without credentials.
func describe(ch spec.Chart) string {
	digest := ""
	if ch.Digest != nil {
		digest = fmt.Sprintf(" (%s)", *ch.Digest)
	}

	repository := redact(spec.Value(ch.Repository))

	return fmt.Sprintf("chart %s %s%s of %s", spec.Value(ch.Name), spec.Value(ch.Version), digest, repository)
}

// redact takes user and password out of a URL.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URL)"
	}
	u.User = nil

	return u.String()
}

// digestOf returns "sha256:…".
func digestOf(archive []byte) string {
	sum := sha256.Sum256(archive)

	return "sha256:" + hex.EncodeToString(sum[:])
}

// digestFits compares the archive with the digest that the stack file says and with the locked one.
func (c Cache) digestFits(archive []byte, ch spec.Chart) error {
	want, got := spec.Value(ch.Digest), digestOf(archive)
	if want == "" {
		return c.Lock.Check(ch, got)
	}
	if got != want {
		return fmt.Errorf("%s has the digest %s: the repository or the cache gave another archive", describe(ch), got)
	}

	return nil
}

// versionFits compares the chart with the pinned version.
func versionFits(loaded *chart.Chart, ch spec.Chart) error {
	want := strings.TrimPrefix(spec.Value(ch.Version), "v")
	if got := strings.TrimPrefix(loaded.Metadata.Version, "v"); want != "" && got != want {
		return fmt.Errorf("chart %s has version %s, not %s: give its version, or the chart of that version", loaded.Name(), got, want)
	}

	return nil
}

// withoutDir keeps the place of the project out of messages.
func withoutDir(err error, dir string) error {
	if dir == "" {
		return err
	}

	return errors.New(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
}
