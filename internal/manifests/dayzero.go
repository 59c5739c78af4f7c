// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Input holds everything that day-0 manifests are made from.
type Input struct {
	// Config is the cluster, complete as [spec.Config.WithDefaults] returns it.
	Config spec.Config
	// Certificates are those that Cilium and Hubble use, made once and kept; nil where the pod
	// network is another. See [NewCertificates].
	Certificates *Certificates
	// Charts holds the chart archives.
	Charts Cache
	// ReadFile reads a file relative to the project directory; needed where manifests are files.
	ReadFile func(string) ([]byte, error)
	// Renders keeps what the charts rendered to for other manifests of the same run; nil keeps nothing.
	Renders *Renders
}

// part holds a manifest before it is numbered.
type part struct {
	name, contents string
}

// DayZero returns the inline manifests in the order they are applied: the pod network, CoreDNS,
// the approver of kubelets' certificates, runtime classes, backups of etcd, then the user's manifests and charts by their
// order. Talos applies manifests by
// name, so that the names are numbered. The same input gives the same bytes. Errors name the setting
// and never quote values.
func DayZero(ctx context.Context, in Input) ([]machineconfig.Manifest, error) {
	var (
		parts []part
		errs  []error
	)
	for _, step := range []func(context.Context) ([]part, error){
		in.network, in.coreDNS, in.certificateApprover, in.runtimeClasses, in.etcdBackup, in.ordered,
	} {
		more, err := step(ctx)
		parts = append(parts, more...)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := make([]machineconfig.Manifest, 0, len(parts))
	for i, p := range parts {
		out = append(out, machineconfig.Manifest{Name: fmt.Sprintf("%03d-%s", i+1, p.name), Contents: p.contents})
	}

	return out, nil
}

// network returns the pod network, where it is not Talos's own.
func (in Input) network(ctx context.Context) ([]part, error) {
	if !in.Config.UsesCilium() {
		return nil, nil
	}

	return in.cilium(ctx)
}

// ordered returns the user's manifests and charts: the lower order first, then manifests before charts,
// then by name.
func (in Input) ordered(ctx context.Context) ([]part, error) {
	type entry struct {
		order, kind int
		name        string
		make        func() (string, error)
	}
	var entries []entry
	for name, m := range in.Config.Manifests.Inline {
		entries = append(entries, entry{spec.Value(m.Order), 0, name, func() (string, error) { return in.inline(m) }})
	}
	for name, c := range in.Config.Manifests.Charts {
		entries = append(entries, entry{spec.Value(c.Order), 1, name, func() (string, error) { return in.chart(ctx, name, c) }})
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	})
	var (
		parts []part
		errs  []error
	)
	for _, e := range entries {
		contents, err := e.make()
		if err != nil {
			errs = append(errs, check.At(check.Key("manifests."+[...]string{"inline", "charts"}[e.kind], e.name), err))

			continue
		}
		parts = append(parts, part{name: e.name, contents: contents})
	}

	return parts, errors.Join(errs...)
}

// inline reads a manifest from its place.
func (in Input) inline(m spec.Manifest) (string, error) {
	switch {
	case m.Inline == nil && m.File == nil:
		return "", errors.New("the manifest is empty: set inline or file")
	case m.Inline != nil && m.File != nil:
		return "", errors.New("the manifest is both inline and a file: set one of them")
	}
	text := []byte(spec.Value(m.Inline))
	if m.File != nil {
		if in.ReadFile == nil {
			return "", fmt.Errorf("the manifest is file %q, but files cannot be read here", *m.File)
		}
		var err error
		if text, err = in.ReadFile(*m.File); err != nil {
			return "", fmt.Errorf("reading the manifest: %w", err)
		}
	}
	if _, err := objects(string(text)); err != nil {
		return "", err
	}

	return string(text), nil
}

// chart renders one of the user's charts.
func (in Input) chart(ctx context.Context, name string, c spec.DayZeroChart) (string, error) {
	namespace := cmp.Or(spec.Value(c.Namespace), "default")
	values, err := valuesOf(c.Values)
	if err != nil {
		return "", err
	}
	loaded, err := in.Charts.Load(ctx, c.Chart)
	if err != nil {
		return "", err
	}
	text, err := in.Renders.render(loaded, Release{
		Name: name, Namespace: namespace, Kubernetes: spec.Value(in.Config.Kubernetes.Version), Values: values,
	})
	if err != nil {
		return "", err
	}
	if text, err = inNamespace(text, namespace); err != nil {
		return "", fmt.Errorf("reading what chart %s rendered: %w", loaded.Name(), err)
	}
	if spec.Value(c.CreateNamespace) && namespace != "default" && !strings.HasPrefix(namespace, "kube-") {
		text = namespaceObject(namespace) + text
	}

	return text, nil
}

// namespaceObject makes a namespace.
func namespaceObject(name string) string {
	return mustYAML(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
}
