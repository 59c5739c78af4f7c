// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// DefaultLock is the file with the digests of the project's charts, relative to the project directory.
const DefaultLock = "charts.lock.yaml"

// LockEnv names another file with digests; a path in it is relative to the project.
const LockEnv = "TALOS_PROXMOX_CHART_LOCK"

// lockHead is what a lock begins with.
const lockHead = "# The charts that `tpx charts` has fetched, by repository: an archive with another digest is refused.\n" +
	"# Keep this file in git. To take another archive of the same version, remove its line and fetch again.\n"

// Lock holds the digests of charts' archives, in a file that is kept with the project.
type Lock struct {
	// Path of the file, which need not exist; empty where nothing is locked.
	Path string
}

// projectLock returns the lock of the project in a directory.
func projectLock(project string) Lock {
	path := os.Getenv(LockEnv)
	if path == "" {
		path = DefaultLock
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(project, path)
	}

	return Lock{Path: path}
}

// read returns digests by repository, and there by chart and version.
func (l Lock) read() (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	if l.Path == "" {
		return all, nil
	}
	text, err := os.ReadFile(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the charts' digests: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("%s is no list of digests: run `%s` where it was removed", filepath.Base(l.Path), FillCommand)
	}

	return all, nil
}

// Check compares a digest ("sha256:…") with the one that is kept; a chart of which none is kept passes.
func (l Lock) Check(ch spec.Chart, digest string) error {
	all, err := l.read()
	if err != nil {
		return err
	}
	if want := all[lockedAt(ch)][lockedAs(ch)]; want != "" && want != digest {
		return fmt.Errorf("%s has the digest %s, and %s says %s: the repository or the cache gave another archive",
			describe(ch), digest, filepath.Base(l.Path), want)
	}

	return nil
}

// Keep adds the digest of a chart of which none is kept, and reports whether it did.
func (l Lock) Keep(ch spec.Chart, digest string) (bool, error) {
	all, err := l.read()
	if err != nil || l.Path == "" || all[lockedAt(ch)][lockedAs(ch)] != "" {
		return false, err
	}
	if all[lockedAt(ch)] == nil {
		all[lockedAt(ch)] = map[string]string{}
	}
	all[lockedAt(ch)][lockedAs(ch)] = digest
	text, err := yaml.Marshal(all)
	if err != nil {
		return false, fmt.Errorf("keeping the charts' digests: %w", err)
	}
	if err := os.WriteFile(l.Path, append([]byte(lockHead), text...), 0o644); err != nil {
		return false, fmt.Errorf("keeping the charts' digests: %w", err)
	}

	return true, nil
}

// lockedAt returns the repository as the lock names it, without credentials.
func lockedAt(ch spec.Chart) string {
	return redact(strings.TrimRight(spec.Value(ch.Repository), "/"))
}

func lockedAs(ch spec.Chart) string {
	return spec.Value(ch.Name) + "-" + strings.TrimPrefix(spec.Value(ch.Version), "v")
}
