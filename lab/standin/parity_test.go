// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// story records the life of a resource with a provider, as the engine and the site see it.
type story struct {
	Problems []string // what Check says
	Refused  string   // the error of Check
	Inputs   any      // what Check makes of the inputs
	Preview  any      // the outputs as planned
	Create   string   // the error
	Calls    []string // what creating asked the site for
	Made     any      // what the site has then, where calls do not say it
	Outputs  any
	Again    string // the difference to itself
	Read     any    // the outputs after a refresh, where they differ
	Drift    string // the difference after a refresh

	Edit        string // the difference that the edit makes
	EditPreview any
	Update      string // the error
	EditCalls   []string
	Edited      any // what the site has then
	EditOutputs any
	EditDrift   string

	Delete      string // the error
	DeleteCalls []string
	Left        any // what the site has in the end
}

// scene describes a resource and what happens to it.
type scene struct {
	token  string
	inputs bridge.Tree
	edited bridge.Tree // nil leaves it as it is
	secret string      // the API token, where it is another
	minds  bool        // the program does not ignore what never settles
}

// player plays scenes with one provider.
type player struct {
	e    engine
	took func() []string // what was asked of the site since this was last called
	look func() any      // what the site has; nil where calls say it all
}

// play tells the story of a resource: checked, planned, made, refreshed, edited, deleted.
func (p player) play(t *testing.T, u resource.URN, inputs, edited bridge.Tree) story {
	t.Helper()

	var st story
	in, problems, err := p.e.tryCheck(u, inputs.Properties(), nil)
	st.Problems, st.Refused, st.Inputs = problems, refusal(err), seen(in)
	if len(problems) > 0 || err != nil {
		return st
	}

	_, planned, err := p.e.create(u, in, true)
	st.Preview = seen(planned)
	if err != nil {
		st.Create = "preview: " + refusal(err)

		return st
	}
	if in.ContainsUnknowns() {
		return st // an engine goes no further
	}
	id, out, err := p.e.create(u, in, false)
	st.Create, st.Calls, st.Made = refusal(err), p.took(), p.seen()
	if err != nil {
		return st
	}
	st.Outputs, st.Again = seen(out), p.difference(u, id, in, out)
	st.Drift, st.Read = p.drift(u, id, in, out)

	if edited != nil {
		in, out = p.edit(u, id, edited, in, out, &st)
	}

	st.Delete, st.DeleteCalls = refusal(p.e.remove(u, id, in, out)), p.took()
	st.Left = p.seen()

	return st
}

func (p player) seen() any {
	if p.look == nil {
		return nil
	}

	return p.look()
}

func (p player) edit(
	u resource.URN, id string, edited bridge.Tree, in, out resource.PropertyMap, st *story,
) (resource.PropertyMap, resource.PropertyMap) {
	news, problems, err := p.e.tryCheck(u, edited.Properties(), in)
	st.Problems, st.Refused = problems, refusal(err)
	if len(problems) > 0 || err != nil {
		return in, out
	}
	d, err := p.e.tryDiff(u, id, in, out, news)
	if err != nil {
		st.Edit = "refused " + bare(refusal(err))

		return in, out
	}
	st.Edit = difference(d)
	if len(d.GetReplaces()) > 0 || d.GetChanges() == pulumirpc.DiffResponse_DIFF_NONE {
		return in, out
	}

	planned, err := p.e.tryUpdate(u, id, in, out, news, true)
	st.EditPreview = seen(planned)
	if err != nil {
		st.Update = "preview: " + refusal(err)
	}
	if err != nil || news.ContainsUnknowns() {
		return in, out
	}
	changed, err := p.e.tryUpdate(u, id, in, out, news, false)
	st.Update, st.EditCalls, st.Edited = refusal(err), p.took(), p.seen()
	if err != nil {
		return in, out
	}
	st.EditOutputs = seen(changed)
	st.EditDrift, _ = p.drift(u, id, news, changed)

	return news, changed
}

// drift returns what a refresh finds.
func (p player) drift(u resource.URN, id string, in, out resource.PropertyMap) (string, any) {
	r := p.e.read(u, id, in, out)
	if r.GetId() == "" {
		return "gone", nil
	}
	props := p.e.unmarshal(r.GetProperties())

	return p.difference(u, id, in, props), seen(props)
}

// difference returns that of unchanged inputs to a state.
func (p player) difference(u resource.URN, id string, in, out resource.PropertyMap) string {
	d, err := p.e.tryDiff(u, id, in, out, in)
	if err != nil {
		return "refused " + bare(refusal(err))
	}

	return difference(d)
}
