// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package access hands out a cluster's kubeconfig and talosconfig, as files or merged into those that
// kubectl and talosctl read.
package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
)

// Files says where credentials go; an empty path leaves one out.
type Files struct{ Kubeconfig, Talosconfig string }

// Write writes the credentials as files that only their owner may read. A file that holds something else
// is left alone unless force is set.
func Write(c state.Cluster, to Files, force bool, out io.Writer) error {
	var errs []error
	for _, f := range []struct{ what, path, text string }{
		{"kubeconfig", to.Kubeconfig, c.Kubeconfig}, {"talosconfig", to.Talosconfig, c.Talosconfig},
	} {
		if f.path == "" {
			continue
		}
		if f.text == "" {
			errs = append(errs, fmt.Errorf("the state has no %s of cluster %q: no up has ended well yet", f.what, c.Name))

			continue
		}
		if err := write(f.path, []byte(f.text), force); err != nil {
			errs = append(errs, fmt.Errorf("writing the %s: %w", f.what, err))

			continue
		}
		fmt.Fprintf(out, "%s of cluster %s: %s\n", f.what, c.Name, f.path)
	}

	return errors.Join(errs...)
}

// write writes a file of mode 0600 by way of another, so that nobody reads half of it.
func write(path string, text []byte, force bool) error {
	old, err := os.ReadFile(path)
	switch {
	case err == nil && !force && !bytes.Equal(old, text):
		return fmt.Errorf("%s is there and holds something else: give --force, or --merge to keep what it has", path)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}

	return replace(path, text)
}

func replace(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = made.Write(text)
	if err = errors.Join(err, made.Close()); err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		_ = os.Remove(made.Name())
	}

	return err
}

// Merge adds the credentials to files that may have others', and selects the cluster in them.
func Merge(c state.Cluster, into Files, force bool, out io.Writer) error {
	if into.Kubeconfig != "" {
		context, err := mergeKubeconfig(c, into.Kubeconfig, force)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "kubeconfig: context %s in %s\n", context, into.Kubeconfig)
	}
	if into.Talosconfig == "" {
		return nil
	}
	context, err := mergeTalosconfig(c, into.Talosconfig, force)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "talosconfig: context %s in %s\n", context, into.Talosconfig)

	return nil
}

func mergeKubeconfig(c state.Cluster, path string, force bool) (string, error) {
	ours, err := clientcmd.Load([]byte(c.Kubeconfig))
	if err != nil || ours.CurrentContext == "" {
		return "", fmt.Errorf("the state has no kubeconfig of cluster %q: no up has ended well yet", c.Name)
	}
	all := api.NewConfig()
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		if all, err = clientcmd.Load(text); err != nil {
			return "", fmt.Errorf("%s is no kubeconfig: %w", path, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	for name, theirs := range ours.Clusters {
		if old, ok := all.Clusters[name]; ok && !force && old.Server != theirs.Server {
			return "", fmt.Errorf("%s has a cluster %q at %s: give --force to write over it", path, name, old.Server)
		}
		all.Clusters[name] = theirs
	}
	for name, user := range ours.AuthInfos {
		all.AuthInfos[name] = user
	}
	for name, context := range ours.Contexts {
		all.Contexts[name] = context
	}
	all.CurrentContext = ours.CurrentContext
	merged, err := clientcmd.Write(*all)
	if err != nil {
		return "", fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if err := replace(path, merged); err != nil {
		return "", fmt.Errorf("writing the kubeconfig: %w", err)
	}

	return ours.CurrentContext, nil
}

func mergeTalosconfig(c state.Cluster, path string, force bool) (string, error) {
	ours, err := clientconfig.FromString(c.Talosconfig)
	if err != nil || ours.Contexts[ours.Context] == nil {
		return "", fmt.Errorf("the state has no talosconfig of cluster %q: no up has ended well yet", c.Name)
	}
	all := &clientconfig.Config{Contexts: map[string]*clientconfig.Context{}}
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		if all, err = clientconfig.FromBytes(text); err != nil {
			return "", fmt.Errorf("%s is no talosconfig: %w", path, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("reading the talosconfig: %w", err)
	}
	if all.Contexts == nil {
		all.Contexts = map[string]*clientconfig.Context{}
	}
	for name, context := range ours.Contexts {
		if old, ok := all.Contexts[name]; ok && !force && old.CA != context.CA {
			return "", fmt.Errorf("%s has a context %q of another cluster: give --force to write over it", path, name)
		}
		all.Contexts[name] = context
	}
	all.Context = ours.Context
	merged, err := all.Bytes()
	if err != nil {
		return "", fmt.Errorf("writing the talosconfig: %w", err)
	}
	if err := replace(path, merged); err != nil {
		return "", fmt.Errorf("writing the talosconfig: %w", err)
	}

	return ours.Context, nil
}
