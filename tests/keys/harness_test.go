// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package keys_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/proto"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/talos-proxmox/talos-proxmox/components"
	"github.com/talos-proxmox/talos-proxmox/internal/pulumitest"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// bundleOfAll is the secrets of every cluster here: they are slow to make, and so that they are no
// difference.
var bundleOfAll = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewClock(), nil)
})

// runner runs the program on stacks and says what came of it.
type runner struct {
	machineSecrets map[string]any
	// made are the certificates and keys that stacks have names for.
	made map[string]string
	// kept are the values that were made by chance, as the first run made them: a state that every
	// further run finds.
	kept sync.Map
	// bases are outcomes by stack, since many keys share one.
	bases sync.Map
	// charts are the archives of every chart that a stack asks for.
	charts components.ChartCache
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	bundle, err := bundleOfAll()
	require.NoError(t, err)
	text, err := json.Marshal(talossecrets.Of(bundle))
	require.NoError(t, err)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	adopted, err := yaml.Marshal(bundle)
	require.NoError(t, err)
	identity, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	r := &runner{charts: components.NewChartCache(t.TempDir(), ".", anyChart), made: map[string]string{
		"@AGE": identity.String(), "@RECIPIENT": identity.Recipient().String(), "@OTHERKEY": string(bundle.Certs.OS.Key),
		"@CERT": string(bundle.Certs.OS.Crt), "@SSHKEY": string(pem.EncodeToMemory(block)), "@BUNDLE": string(adopted),
	}}
	require.NoError(t, json.Unmarshal(text, &r.machineSecrets))

	return r
}

// anyChart returns a repository that has every chart in every version, each with nothing in it.
func anyChart(_ context.Context, ch spec.Chart) ([]byte, error) {
	dir, err := os.MkdirTemp("", "chart-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := chartutil.Save(&chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: *ch.Name, Version: *ch.Version}}, dir)
	if err != nil {
		return nil, err
	}

	return os.ReadFile(path)
}

// outcome holds everything that a stack leads to: each resource as the engine is asked for it, and the
// files that are written; or the error.
type outcome struct {
	resources map[string]string
	err       error
}

// outcome runs the program on a stack.
func (r *runner) outcome(t *testing.T, s map[string]any) outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "written")
	source := stack.Source{Stack: "test", Values: map[string]string{}}
	for key, value := range s {
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		source.Values[stack.Project+":"+key] = r.fill(string(encoded), dir)
		if secretForm.Match(encoded) {
			source.SecretKeys = append(source.SecretKeys, stack.Project+":"+key)
		}
	}
	loaded, err := stack.Load(source)
	if err != nil {
		return outcome{err: err}
	}

	found := outcome{resources: map[string]string{}}
	var mu sync.Mutex
	recorder := &pulumitest.Recorder{State: func(args pulumi.MockResourceArgs) (string, resource.PropertyMap) {
		state := r.state(args)
		text := fingerprint(t, args)
		mu.Lock()
		defer mu.Unlock()
		found.resources[args.TypeToken+" "+args.Name] = strings.ReplaceAll(text, dir, writtenDir)

		return args.Name + "-id", state
	}}
	found.err = recorder.Run(false, func(ctx *pulumi.Context) error {
		_, err := components.NewCluster(ctx, "cluster", &components.ClusterArgs{Config: loaded.Config, Charts: &r.charts})

		return err
	})
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found.resources["file "+strings.TrimPrefix(path, dir)] = "written"
		}

		return nil
	})

	return found
}

// secretForm is what the cases write where a secret belongs.
var secretForm = regexp.MustCompile(`secret"[,}\]]|"a-secret"|@SSHKEY|@OTHERKEY|@BUNDLE|@AGE|u@pam!`)

// fill puts in what the cases have names for.
func (r *runner) fill(text, dir string) string {
	text = strings.ReplaceAll(text, writtenDir, dir)
	for name, value := range r.made {
		encoded, _ := json.Marshal(value)
		text = strings.ReplaceAll(text, strconv.Quote(name), string(encoded))
	}

	return text
}

// writtenDir stands for a directory of the run's own in a stack.
const writtenDir = "WRITTEN"

// state answers as the providers do.
func (r *runner) state(args pulumi.MockResourceArgs) resource.PropertyMap {
	outputs := args.Inputs.Copy()
	switch args.TypeToken {
	case "talos:machine/secrets:Secrets":
		outputs["machineSecrets"] = resource.NewPropertyValue(r.machineSecrets)
		outputs["clientConfiguration"] = resource.NewPropertyValue(map[string]any{
			"caCertificate": "Y2E=", "clientCertificate": "Y2VydA==", "clientKey": "a2V5",
		})
	case "proxmoxve:VM/virtualMachine:VirtualMachine":
		if _, ours := outputs["smbios"]; ours {
			outputs["smbios"] = resource.NewPropertyValue(map[string]any{"uuid": "that of its creation"})
		}
	case "talos:cluster/kubeconfig:Kubeconfig":
		outputs["kubeconfigRaw"] = resource.NewStringProperty("the kubeconfig")
	case "pulumi:index:Stash":
		outputs["output"] = outputs["input"]
		if slices.Contains(args.RegisterRPC.GetIgnoreChanges(), "input") {
			first, _ := r.kept.LoadOrStore(args.Name+fmt.Sprint(outputs["input"].SecretValue().Element.ObjectValue().StableKeys()), outputs["input"])
			outputs["output"], _ = first.(resource.PropertyValue)
		}
	}

	return outputs
}

// fingerprint returns what the engine is asked for: inputs, options and what it depends on. Inputs that only
// remember what was said, or what was made by chance, are no effect.
func fingerprint(t *testing.T, args pulumi.MockResourceArgs) string {
	t.Helper()
	request, ok := proto.Clone(args.RegisterRPC).(*pulumirpc.RegisterResourceRequest)
	require.True(t, ok)
	remembers := strings.HasSuffix(args.Name, "-ready") || strings.HasSuffix(args.Name, "-machines") ||
		strings.HasSuffix(args.Name, "-gitops")
	if args.TypeToken == "pulumi:index:Stash" && (remembers || slices.Contains(request.GetIgnoreChanges(), "input")) {
		request.Object = nil
	}
	delete(request.GetObject().GetFields(), "smbios")     // another one with each run
	request.SourcePosition, request.StackTrace = nil, nil // where in the program it was asked for
	slices.Sort(request.GetDependencies())
	for _, on := range request.GetPropertyDependencies() {
		slices.Sort(on.GetUrns())
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	require.NoError(t, err)

	return string(text)
}

// difference names a resource that differs between two outcomes; empty when none does.
func difference(a, b outcome) string {
	for name, was := range a.resources {
		if now, still := b.resources[name]; !still || now != was {
			return name
		}
	}
	for name := range b.resources {
		if _, was := a.resources[name]; !was {
			return name
		}
	}

	return ""
}

// base returns the outcome of a stack, kept.
func (r *runner) base(t *testing.T, s map[string]any) outcome {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	key := fmt.Sprintf("outcome %x", sha256.Sum256(text))
	if known, ok := r.bases.Load(key); ok {
		found, _ := known.(outcome)

		return found
	}
	found := r.outcome(t, s)
	r.bases.Store(key, found)

	return found
}

// parse reads a piece of a stack file.
func parse(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, yaml.Unmarshal([]byte(text), &v), text)

	return v
}

// laid lays one piece of a stack file over another: maps key by key, lists entry by entry. Neither is
// changed.
func laid(under, over any) any {
	switch over := over.(type) {
	case map[string]any:
		below, _ := under.(map[string]any)
		out := map[string]any{}
		for key, value := range below {
			out[key] = value
		}
		for key, value := range over {
			out[key] = laid(below[key], value)
		}

		return out
	case []any:
		below, _ := under.([]any)
		if len(below) == 0 || !isBlock(below[0]) {
			return over
		}
		out := slices.Clone(below)
		for i, value := range over {
			if i < len(out) {
				out[i] = laid(out[i], value)
			} else {
				out = append(out, value)
			}
		}

		return out
	default:
		return over
	}
}

func isBlock(v any) bool {
	_, ok := v.(map[string]any)

	return ok
}

// wrapped returns a value at a place such as "nodes.w.usb[].usb3".
func wrapped(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	inner := wrapped(path[1:], value)
	if path[0] == "[]" {
		return []any{inner}
	}

	return map[string]any{path[0]: inner}
}
