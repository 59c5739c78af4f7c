// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package standin_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/stretchr/testify/require"

	"github.com/talos-proxmox/talos-proxmox/lab/factory"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

const (
	secretsToken   = "talos:machine/secrets:Secrets"
	schematicToken = "talos:imageFactory/schematic:Schematic"
)

// TestTalosIsLikeThePlugin tells the same stories with the stand-in and with the genuine plugin, each
// with a node and a factory of its own, and wants them alike: what is checked, asked of the node and the
// factory, planned, kept, changed, replaced and said.
func TestTalosIsLikeThePlugin(t *testing.T) {
	t.Parallel()

	told := narrate(t, "talos")
	var plugin *talosStage
	standin := newTalosStage(t, serve(t, "talos"))
	if told.live {
		plugin = newTalosStage(t, genuine(t, "talos"))
	}
	var shared talosGiven
	told.given(t, &shared, func() { shared = talosEngine(t).talosGiven() })

	for name, sc := range talosScenes(t, shared) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			alikeInStates(t, told.story(t, name, func() story { return plugin.play(t, shared, sc) }), standin.play(t, shared, sc))
		})
	}
}

// talosGiven holds what the scenes of both sides share: keys and certificates of a cluster that never was.
type talosGiven struct {
	Client bridge.Tree // clientConfiguration
	Other  bridge.Tree // that of another cluster
	CA     *talosx509.PEMEncodedCertificateAndKey
	Config string
	// Long and Short are kubeconfigs whose certificates are valid for so long.
	Long, Short string
}

func (e engine) talosGiven() talosGiven {
	e.t.Helper()

	secrets := e.secrets()
	tree, other := bridge.TreeOf(secrets), bridge.TreeOf(e.secrets())

	return talosGiven{
		Client: tree.Sub("clientConfiguration"), Other: other.Sub("clientConfiguration"),
		CA: &talosx509.PEMEncodedCertificateAndKey{
			Crt: unbase64(e.t, tree.Str("machineSecrets.certs.os.cert")), Key: unbase64(e.t, tree.Str("machineSecrets.certs.os.key")),
		},
		Config: e.machineConfig(secrets),
		Long:   adminConfig(e.t, 100*365*24*time.Hour), Short: adminConfig(e.t, 24*time.Hour),
	}
}

// talosScene describes a resource of a node's or a factory's, and what happens to it.
type talosScene struct {
	token  string
	inputs bridge.Tree // "endpoint: NODE" is the side's own node
	edited bridge.Tree // what else is said then
	node   *fakeNode   // how the node behaves; each side has a copy
	// configured: the node has its configuration, and wants certificates.
	configured bool
	about      string // what the factory is asked of it has this in it
}

// talosStage runs a provider with a factory of its own.
type talosStage struct {
	engine  engine
	factory *httptest.Server

	mu    sync.Mutex
	posts []string
}

func newTalosStage(t *testing.T, port int) *talosStage {
	t.Helper()

	images, err := factory.Open(t.TempDir())
	require.NoError(t, err)
	s := &talosStage{engine: attach(t, port)}
	s.factory = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // short
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		s.posts = append(s.posts, r.Method+" "+r.URL.Path+" "+string(body))
		s.mu.Unlock()
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(s.factory.Close)

	require.NoError(t, s.engine.configure(bridge.Tree{"imageFactoryUrl": s.factory.URL}))

	return s
}

// posted returns the factory's calls about a schematic.
func (s *talosStage) posted(about string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var mine, others []string
	for _, p := range s.posts {
		if about != "" && strings.Contains(p, about) {
			mine = append(mine, p)
		} else {
			others = append(others, p)
		}
	}
	s.posts = others

	return mine
}

func (s *talosStage) play(t *testing.T, given talosGiven, sc talosScene) story {
	t.Helper()

	n := &fakeNode{}
	if sc.node != nil {
		// A copy: the lock is the node's own.
		n = &fakeNode{refuse: sc.node.refuse, kubeconfig: sc.node.kubeconfig, dry: sc.node.dry}
	}
	var ca *talosx509.PEMEncodedCertificateAndKey
	if sc.configured {
		ca = given.CA
	}
	at := n.start(t, ca)

	e := s.engine
	e.t = t
	p := player{e: e, took: func() []string { return append(n.took(), s.posted(sc.about)...) }}
	inputs := placed(sc.inputs, at)
	var edited bridge.Tree
	if sc.edited != nil {
		edited = maps.Clone(inputs)
		maps.Copy(edited, placed(sc.edited, at))
	}

	return p.play(t, urn(sc.token, "it"), inputs, edited)
}

// placed returns inputs with the side's own node.
func placed(inputs bridge.Tree, at string) bridge.Tree {
	own := maps.Clone(inputs)
	if own.Str("endpoint") == ownNode {
		own["endpoint"] = at
	}

	return own
}

// ownNode is the endpoint of a scene that stands for the side's node.
const ownNode = "NODE"
