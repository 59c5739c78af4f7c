// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// checkRelease resolves the chart, so that a preview knows that it is there.
func (p *provider) checkRelease(
	ctx context.Context, c *cluster, req plugin.CheckRequest,
) (plugin.CheckResponse, error) {
	in, err := decoded(req.News)
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	for key, value := range map[resource.PropertyKey]any{
		"allowNullValues": false, "atomic": false, "cleanupOnFail": false, "createNamespace": false, "dependencyUpdate": false,
		"description": "", "devel": false, "disableCRDHooks": false, "disableOpenapiValidation": false,
		"disableWebhooks": false, "forceUpdate": false, "keyring": "", "lint": false, "postrender": "", "recreatePods": false,
		"chart": "", "values": map[string]any{},
		"renderSubchartNotes": false, "replace": false, "resetValues": false, "reuseValues": false,
		"skipAwait": false, "skipCrds": false, "timeout": 300, "verify": false, "waitForJobs": false,
		"namespace": c.defaultNamespace(),
	} {
		if _, have := in[key]; !have && (key != "timeout" || !opened(in["skipAwait"]).IsBool() || !opened(in["skipAwait"]).BoolValue()) {
			in[key] = resource.NewPropertyValue(value)
		}
	}

	if _, have := in["name"]; !have {
		if old, kept := req.Olds["name"]; kept {
			in["name"] = old
		} else {
			name, err := resource.NewUniqueName(req.RandomSeed, req.URN.Name()+"-", 8, 53, nil)
			if err != nil {
				return plugin.CheckResponse{}, fmt.Errorf("naming %s: %w", req.URN.Name(), err)
			}
			in["name"] = resource.NewProperty(name)
		}
	}

	if in.ContainsUnknowns() {
		return plugin.CheckResponse{Properties: in}, nil
	}

	h, err := newHelm(c, bridge.TreeOf(in))
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	chart, err := h.load(ctx)
	if _, have := in["version"]; err != nil && !have {
		in["version"] = resource.NewProperty("")
	}
	if err != nil {
		return plugin.CheckResponse{Properties: in, Failures: []plugin.CheckFailure{{
			Property: "chart", Reason: fmt.Sprintf("%v; check the chart name and repository configuration.", err),
		}}}, nil
	}
	in["version"] = resource.NewProperty(chart.Metadata.Version) // what a range of versions comes to

	return plugin.CheckResponse{Properties: in}, nil
}

func (p *provider) createRelease(
	ctx context.Context, c *cluster, req plugin.CreateRequest,
) (plugin.CreateResponse, error) {
	if req.Preview {
		return plugin.CreateResponse{Properties: releasePreview(req.Properties)}, nil
	}

	out, made, err := p.release(ctx, c, req.Properties, req.Timeout, (*helm).install,
		"was created, but failed to initialize completely")
	id := releaseID(req.Properties)
	if err != nil && made {
		return plugin.CreateResponse{}, bridge.Partial(string(id), req.Properties, out, err)
	}
	if err != nil {
		return plugin.CreateResponse{}, err
	}

	return plugin.CreateResponse{ID: id, Properties: out}, nil
}

func (p *provider) updateRelease(
	ctx context.Context, c *cluster, req plugin.UpdateRequest,
) (plugin.UpdateResponse, error) {
	if req.Preview {
		return plugin.UpdateResponse{Properties: releasePreview(req.NewInputs)}, nil
	}

	out, made, err := p.release(ctx, c, req.NewInputs, req.Timeout, (*helm).upgrade, "failed to initialize completely")
	if err != nil && made {
		return plugin.UpdateResponse{}, bridge.Partial(string(req.ID), req.NewInputs, out, err)
	}

	return plugin.UpdateResponse{Properties: out}, err
}

// release runs an action. made tells that the release is there, whatever the error.
func (p *provider) release(
	ctx context.Context, c *cluster, in resource.PropertyMap, seconds float64,
	act func(*helm, context.Context) (*release.Release, error), failed string,
) (out resource.PropertyMap, made bool, err error) {
	if c.unreachable != "" {
		return nil, false, fmt.Errorf("can't create Helm Release with unreachable cluster: %w", c.errUnreachable())
	}

	ctx, cancel := bridge.Bounded(ctx, p.conn, seconds)
	defer cancel()

	h, err := newHelm(c, bridge.TreeOf(in))
	if err != nil {
		return nil, false, err
	}

	r, err := act(h, ctx)
	if r == nil {
		return nil, false, err
	}
	if err != nil {
		if _, lost := h.get(); lost != nil { // atomic has undone it
			return nil, false, err
		}
		err = fmt.Errorf("Helm release %q %s. Use Helm CLI to investigate: failed to become available within allocated "+
			"timeout. Error: Helm Release %s: %w", releaseID(in), failed, releaseID(in), err) // the plugin's text
	}

	return releaseOutputs(in, r), true, err
}

func releaseID(in resource.PropertyMap) resource.ID {
	t := bridge.TreeOf(in)
	return resource.ID(t.Str("namespace") + "/" + t.Str("name"))
}

func releasePreview(in resource.PropertyMap) resource.PropertyMap {
	out := in.Copy()
	out["status"] = resource.MakeComputed(resource.NewProperty(""))
	out["resourceNames"] = resource.MakeComputed(resource.NewProperty(""))

	return out
}

func releaseOutputs(in resource.PropertyMap, r *release.Release) resource.PropertyMap {
	t := bridge.Tree{
		"resourceNames": resourceNames(r.Manifest),
		"status": bridge.Tree{
			"appVersion": r.Chart.Metadata.AppVersion, "chart": r.Chart.Metadata.Name, "name": r.Name,
			"namespace": r.Namespace, "revision": r.Version, "status": string(r.Info.Status),
			"version": r.Chart.Metadata.Version,
		},
	}

	if v := opened(in["values"]); len(r.Config) > 0 && v.IsObject() && len(v.ObjectValue()) == 0 {
		t["values"] = r.Config // an upgrade without values keeps those that there were
	}

	out := in.Copy()
	for k, v := range t.Properties() {
		out[k] = v
	}

	return out
}

func (p *provider) readRelease(
	ctx context.Context, c *cluster, req plugin.ReadRequest,
) (plugin.ReadResponse, error) {
	namespace, name, _ := strings.Cut(string(req.ID), "/")

	h, err := newHelm(c, bridge.Tree{"namespace": namespace, "name": name})
	if err != nil {
		return plugin.ReadResponse{}, err
	}

	r, err := h.get()
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return plugin.ReadResponse{}, nil
	}
	if err != nil {
		return plugin.ReadResponse{}, fmt.Errorf("reading release %s: %w", req.ID, err)
	}

	in := req.Inputs
	if len(in) == 0 {
		in = bridge.Tree{
			"chart": r.Chart.Metadata.Name, "version": r.Chart.Metadata.Version,
			"name": name, "namespace": namespace, "values": r.Config,
		}.Properties()
	} else {
		seen := in.Copy()
		if _, given := in["version"]; given {
			seen["version"] = resource.NewProperty(r.Chart.Metadata.Version)
		}
		in = seen
	}

	return plugin.ReadResponse{ReadResult: plugin.ReadResult{
		ID: req.ID, Inputs: in, Outputs: releaseOutputs(in, r),
	}}, ctx.Err()
}

func (p *provider) deleteRelease(
	ctx context.Context, c *cluster, req plugin.DeleteRequest,
) (plugin.DeleteResponse, error) {
	ctx, cancel := bridge.Bounded(ctx, p.conn, req.Timeout)
	defer cancel()

	h, err := newHelm(c, bridge.TreeOf(req.Outputs))
	if err != nil {
		return plugin.DeleteResponse{}, err
	}
	if err := h.uninstall(ctx); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return plugin.DeleteResponse{}, fmt.Errorf("deleting release %s: %w", req.ID, err)
	}

	return plugin.DeleteResponse{}, nil
}
