// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// Snapshots writes copies of etcd to a directory, one for each run that upgrades something.
type Snapshots struct {
	// Access opens the cluster.
	Access cluster.Access
	// Cluster is what is supposed to run.
	Cluster cluster.Cluster
	// Directory that receives them; made where it is missing.
	Directory string
	// Keep is how many of this cluster stay; 0 for all.
	Keep int
	// Poll bounds one snapshot.
	Poll cluster.PollOptions

	mu   sync.Mutex
	done bool
}

const snapshotSuffix = ".snapshot"

// Take takes a snapshot unless this run has one, from the first control plane that delivers it. The file's
// name has the cluster, what it runs and the time; only its owner may read it, since it holds every secret of
// the cluster. A nil receiver takes none.
func (s *Snapshots) Take(ctx context.Context, runs string, report func(string)) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil
	}
	if err := os.MkdirAll(s.Directory, 0o700); err != nil {
		return fmt.Errorf("taking a snapshot of etcd: lifecycle.snapshotDirectory: %w", err)
	}
	api, err := s.Access.Talos(ctx)
	if err != nil {
		return fmt.Errorf("taking a snapshot of etcd: %w", err)
	}
	path := filepath.Join(s.Directory, s.prefix()+runs+"-"+time.Now().UTC().Format("20060102T150405Z")+snapshotSuffix)
	var errs []error
	for _, m := range s.Cluster.ControlPlanes() {
		if err := s.write(ctx, api, m, path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m, err))

			continue
		}
		s.done = true
		report("etcd is saved in " + path)

		return s.prune()
	}

	return fmt.Errorf("taking a snapshot of etcd: %w", errors.Join(errs...))
}

// write writes to a temporary file first, so that a file with the final name is complete.
func (s *Snapshots) write(ctx context.Context, api cluster.Talos, m cluster.Member, path string) error {
	taking, cancel := context.WithTimeout(ctx, s.Poll.Timeout)
	defer cancel()
	file, err := os.CreateTemp(s.Directory, ".partial-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // gone when all went well
	err = api.Snapshot(taking, m.Address, file)
	if err == nil {
		err = file.Sync()
	}
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr, file.Close()); err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}

	return os.Rename(file.Name(), path)
}

// prune removes the oldest snapshots beyond Keep: names end with the time they were taken.
func (s *Snapshots) prune() error {
	files, err := filepath.Glob(filepath.Join(s.Directory, "*"+snapshotSuffix))
	if err != nil || s.Keep == 0 {
		return err
	}
	own := slices.DeleteFunc(files, func(f string) bool { return !s.owns(filepath.Base(f)) })
	slices.SortFunc(own, func(a, b string) int { return strings.Compare(stamp(a), stamp(b)) })
	for _, old := range own[:max(len(own)-s.Keep, 0)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("removing an old snapshot of etcd: %w", err)
		}
	}

	return nil
}

func (s *Snapshots) prefix() string { return s.Cluster.Name + "-" }

// owns reports whether a file is a snapshot of this cluster, and not of one whose name begins alike.
func (s *Snapshots) owns(file string) bool {
	rest, ok := strings.CutPrefix(file, s.prefix())

	return ok && slices.ContainsFunc([]string{"talos-v", "kubernetes-v", "kubernetes-unknown-"}, func(what string) bool {
		return strings.HasPrefix(rest, what)
	})
}

// stamp returns the time in a snapshot's name.
func stamp(file string) string {
	file = strings.TrimSuffix(filepath.Base(file), snapshotSuffix)

	return file[strings.LastIndex(file, "-")+1:]
}
