// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package factory

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
)

// Host is the name under which the real Image Factory answers.
const Host = "factory.talos.dev"

// Vanilla is the id of the schematic without any customization. It is always registered.
const Vanilla = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"

// Factory knows schematics. Safe for concurrent use.
type Factory struct {
	dir string

	mu    sync.Mutex
	known map[string]Schematic
}

// problem describes an answer that is not a success.
type problem struct {
	status  int
	message string
}

// Error implements error.
func (p *problem) Error() string { return p.message }

// Open reads the schematics kept in dir, which is made when missing.
func Open(dir string) (*Factory, error) {
	f := &Factory{dir: dir, known: map[string]Schematic{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the image factory: %w", err)
	}

	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("opening the image factory: %w", err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path) // G304: our own directory
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading schematic %s: %w", path, err)
		}
		s, err := parseSchematic(data)
		if err != nil {
			return nil, fmt.Errorf("reading schematic %s: %w", path, err)
		}
		f.known[strings.TrimSuffix(filepath.Base(path), ".yaml")] = s
	}

	if _, err := f.put(Schematic{}); err != nil {
		return nil, err
	}

	return f, nil
}

// Register registers a schematic given as YAML and returns its id.
func (f *Factory) Register(data []byte) (string, error) {
	s, err := parseSchematic(data)
	if err != nil {
		return "", &problem{http.StatusBadRequest, err.Error()}
	}

	return f.put(s)
}

// text returns a registered schematic as the factory keeps it.
func (f *Factory) text(id string) (string, error) {
	f.mu.Lock()
	known := f.known[id]
	f.mu.Unlock()
	_, data, err := known.id()
	if err != nil {
		return "", fmt.Errorf("encoding schematic %s: %w", id, err)
	}

	return string(data), nil
}

func (f *Factory) put(s Schematic) (string, error) {
	id, data, err := s.id()
	if err != nil {
		return "", fmt.Errorf("registering a schematic: %w", err)
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	if _, ok := f.known[id]; ok {
		return id, nil
	}

	path := filepath.Join(f.dir, id+".yaml")
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return "", fmt.Errorf("registering schematic %s: %w", id, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return "", fmt.Errorf("registering schematic %s: %w", id, err)
	}
	f.known[id] = s

	return id, nil
}

func (f *Factory) get(id string) (Schematic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	s, ok := f.known[id]
	if !ok {
		return s, &problem{http.StatusNotFound, fmt.Sprintf("schematic ID %q not found", id)}
	}

	return s, nil
}

// Schematics returns the ids of all registered schematics.
func (f *Factory) Schematics() []string {
	f.mu.Lock()
	defer f.mu.Unlock()

	var ids []string
	for id := range f.known {
		ids = append(ids, id)
	}
	slices.Sort(ids)

	return ids
}

var extensionName = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9.-]+$`)

// newest returns the newest patch release of each minor one that the lab knows.
func newest() map[uint64]uint64 {
	return map[uint64]uint64{6: 8, 7: 7, 8: 4, 9: 6, 10: 9, 11: 6, 12: 7, 13: 9, 14: 1}
}

// version checks a Talos version and writes it with its "v".
func version(s string) (string, error) {
	v, err := semver.Parse(strings.TrimPrefix(s, "v"))
	if err != nil {
		return "", &problem{http.StatusBadRequest, fmt.Sprintf("error parsing version: %v", err)}
	}
	if last, ok := newest()[v.Minor]; v.Major != 1 || !ok || v.Patch > last+20 {
		return "", &problem{http.StatusNotFound, fmt.Sprintf("version v%s is not available", v)}
	}

	return "v" + v.String(), nil
}

// versions returns all that the lab knows, oldest first.
func versions() []string {
	var all []string
	for minor := uint64(6); minor <= 14; minor++ {
		for patch := uint64(0); patch <= newest()[minor]; patch++ {
			all = append(all, fmt.Sprintf("v1.%d.%d", minor, patch))
		}
	}

	return all
}
