// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package stack_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// names are what the user chose in the rich base, by the blocks that have such names.
var names = map[string]string{
	"nodes": "w-1", "networks": "lan", "disks": "data", "hosts": "pve1", "registries": "docker.io", "pools": "main",
}

// smallestEdits returns edits of one setting each: every key that a stack file can have, with values that its type allows.
func smallestEdits() []mistake {
	var all []mistake
	for _, k := range spec.KeysOf(reflect.TypeFor[stack.File](), "") {
		path, ok := placed(k.Path)
		if !ok || k.Type == reflect.TypeFor[spec.Secret]() {
			continue
		}
		for _, value := range smallest(k) {
			edits := []string{path + "=" + value}
			for block, needed := range around {
				if strings.HasPrefix(path, block+".") {
					edits = append([]string{needed}, edits...)
				}
			}
			all = append(all, mistake{base: "rich", edits: edits})
		}
	}

	return all
}

// placed returns the path of a key in the rich base; false for what is below names that it does not have, and for keys that stand
// for those of nodes.
func placed(path string) (string, bool) {
	at, before := "", ""
	for _, name := range strings.Split(path, ".") {
		if strings.HasSuffix(name, "[]") || name == "defaults" || name == "sizes" || at == "" && name == "pools" {
			return "", false
		}
		if name == "*" {
			chosen, known := names[before]
			if !known {
				return "", false
			}
			name = chosen
		}
		at, before = check.Key(at, name), name
	}

	return at, true
}

// smallest returns values that the type of a key allows, as YAML.
func smallest(k spec.Key) []string {
	switch {
	case k.Type == reflect.TypeFor[spec.Text]():
		return []string{"x", "{x: y}"}
	case k.Type == reflect.TypeFor[spec.Duration]():
		return []string{"0s", "-1s", "10000h"}
	case k.Enum != nil && k.Type.Kind() == reflect.String:
		return k.Enum
	case k.Type.Kind() == reflect.Bool:
		return []string{"true", "false"}
	case k.Type.Kind() == reflect.Int:
		return []string{"0", "1", "-1", "7", "99999999999"}
	case k.Type.Kind() == reflect.String:
		return []string{"x", `"a b"`, "A_b", `"https://x.example.com/y?z=1"`, "10.0.0.300", "10.0.0.11", "/x", "../x"}
	case k.Type.Kind() == reflect.Slice && k.Type.Elem().Kind() == reflect.String:
		return []string{"[]", `["a b"]`, "[x, x]", "[10.0.0.11]"}
	case k.Type.Kind() == reflect.Map && k.Type.Elem().Kind() == reflect.String:
		return []string{`{"a b": x}`, "{x: y}"}
	case spec.HoldsSettings(k.Type):
		return []string{"{}"}
	default:
		return nil
	}
}

// around are the blocks that a key needs around it, so that its value alone can be wrong.
var around = map[string]string{
	"kubernetes.etcd.backup": "kubernetes.etcd.backup={ageRecipient: age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p, " +
		"s3: {bucket: etcd-backups, accessKeyId: a, secretAccessKey: {secure: b}}}",
	"kubernetes.apiServer.oidc":              `kubernetes.apiServer.oidc={issuerUrl: "https://id.example.com", clientId: k}`,
	"cni.cilium.bgp":                         "cni.cilium.bgp={localAsn: 65001, peers: {r: {address: 10.0.0.250, asn: 65000}}}",
	"cni.cilium.gatewayApi":                  "cni.cilium.gatewayApi={apiServer: {hostname: api.example.com}}",
	"gitops.git.auth.githubApp":              `gitops.git.auth={type: githubApp, githubApp: {id: "1", installationId: "2", privateKey: {secure: ` + aKey + `}}}`,
	"output.store":                           `output.store={kubeconfigName: a, command: [x, "{name}"]}`,
	"nodes.w-1.efiDisk":                      "nodes.w-1={bios: ovmf, efiDisk: {}}",
	"nodes.w-1.tpm":                          "nodes.w-1={bios: ovmf, tpm: {}}",
	"nodes.w-1.gpu":                          "nodes.w-1.gpu={mapping: card}",
	"nodes.w-1.ha":                           "nodes.w-1={ha: {}, cdRom: false}",
	"image.overlay":                          "image={extensions: [qemu-guest-agent], overlay: {name: a, image: siderolabs/sbc-raspberrypi}}",
	"kubernetes.kubelet.certificateApprover": "kubernetes.kubelet={rotateServerCertificates: true, certificateApprover: {}}",
}

// aKey stands for a private key, on one line of YAML.
const aKey = `"x"`

// several are edits that make more than one mistake: a block that needs more than one setting, a name and its value.
var several = regexp.MustCompile(`(^proxmox|s3|backup|bgp|overlay|oidc|githubApp|register|store)=\{\}$|\[x, x\]$|\{"a b": x\}$|^image\.(arch|schematicFile)=|` +
	`^gitops\.git\.auth\.(githubApp|register)\.|^image\.overlay\.|^nodes\.w-1\.gpu\.(vendor|devices)=|^nodes\.w-1\.ha\.`)

// TestSmallestBreakingEdits makes one edit of each kind that a key's type allows, generated from the types: whatever is refused is
// told once, at a line.
func TestSmallestBreakingEdits(t *testing.T) {
	t.Parallel()
	rules, _ := messagesOf(t, "../internal/rules")
	own, _ := messagesOf(t, ".")
	said, refused := map[int]bool{}, 0
	all := slices.Concat(rules, own)
	for _, m := range smallestEdits() {
		problems := m.problems(t)
		if len(problems) > 0 {
			refused++
		}
		for _, p := range problems {
			assert.Positive(t, p.Line, "%s: %s", m.edits, p)
			for i, message := range all {
				if !said[i] && message.form.MatchString(p.Message) {
					said[i] = true
				}
			}
		}
		if !several.MatchString(m.edits[len(m.edits)-1]) {
			assert.LessOrEqual(t, len(problems), 1, "%s: %v", m.edits, problems)
		}
	}
	t.Logf("%d edits, of which %d were refused; %d of %d rules broken by them", len(smallestEdits()), refused, len(said), len(all))
	assert.Greater(t, refused, 1000)
}
