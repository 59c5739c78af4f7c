// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/proxmox"
)

const (
	machineType  = "proxmoxve:VM/virtualMachine:VirtualMachine"
	providerType = "pulumi:providers:proxmoxve"
	secretsType  = "talos:machine/secrets:Secrets"
	// unknown is in a plan the value that only an `up` knows.
	unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
)

// plan holds the part of a preview that concerns VMs.
type plan struct {
	provider provider
	machines []planned
	// components are those that resources belong to, by URN.
	components map[string]component
}

// component holds what a resource belongs to.
type component struct {
	kind, parent string
	// known reports whether the state has it.
	known bool
}

// planned describes a VM that an up would create.
type planned struct {
	urn, parent string
	inputs      map[string]any
}

// readPlan reads what `pulumi preview --json` prints.
func readPlan(text []byte) (plan, error) {
	var preview struct {
		Steps []struct {
			Op  string `json:"op"`
			URN string `json:"urn"`
			New struct {
				Type   string         `json:"type"`
				Parent string         `json:"parent"`
				Inputs map[string]any `json:"inputs"`
			} `json:"newState"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(text, &preview); err != nil {
		return plan{}, fmt.Errorf("reading the preview: %w", err)
	}
	p := plan{components: map[string]component{}}
	for _, step := range preview.Steps {
		p.components[step.URN] = component{kind: step.New.Type, parent: step.New.Parent, known: step.Op != "create"}
		switch create := step.Op == "create"; {
		case step.New.Type == providerType:
			p.provider = provider{urn: step.URN, parent: step.New.Parent, known: !create, inputs: step.New.Inputs}
		case create && step.New.Type == secretsType:
			return plan{}, errors.New("the stack would make new secrets, which give no access to the running cluster: " +
				"set cluster.adopted and cluster.secretsBundle")
		case create && step.New.Type == machineType:
			p.machines = append(p.machines, planned{urn: step.URN, parent: step.New.Parent, inputs: step.New.Inputs})
		}
	}
	slices.SortFunc(p.machines, func(a, b planned) int { return strings.Compare(a.urn, b.urn) })

	return p, nil
}

func (m planned) name() string { return m.text("name") }

func (m planned) text(key string) string { s, _ := m.inputs[key].(string); return s }

func (m planned) id() int { id, _ := m.inputs["vmId"].(float64); return int(id) }

// blocks returns a list of blocks among the inputs.
func (m planned) blocks(key string) []map[string]any {
	list, _ := m.inputs[key].([]any)
	var all []map[string]any
	for _, v := range list {
		if block, ok := v.(map[string]any); ok {
			all = append(all, block)
		}
	}

	return all
}

// compare records everything by which a VM differs from the planned one, or has what `up` would
// take away. It takes over what only the VM itself can say.
func (m *planned) compare(is proxmox.Machine, problems *check.List) {
	at := check.Join("nodes", m.name())
	if is.Host != m.text("nodeName") {
		problems.Addf(check.Join(at, "host"), "VM %d is on host %s, not %s: write that host", m.id(), is.Host, m.text("nodeName"))
	}
	if is.Name != m.name() {
		problems.Addf(check.Join(at, "vmId"), "VM %d is named %q, not %q: give the node's own VM, or rename that VM", m.id(), is.Name, m.name())
	}
	var macs []string
	for _, card := range m.blocks("networkDevices") {
		mac, _ := card["macAddress"].(string)
		macs = append(macs, strings.ToUpper(mac))
	}
	if !slices.Equal(is.MACs, macs) {
		problems.Addf(check.Join(at, "networks"), "VM %d has the MAC addresses [%s], not [%s]: write each as its network's mac",
			m.id(), strings.Join(is.MACs, " "), strings.Join(macs, " "))
	}
	var slots []string
	for _, disk := range m.blocks("disks") {
		slot, _ := disk["interface"].(string)
		slots = append(slots, slot)
	}
	slices.Sort(slots)
	slices.Sort(is.Disks)
	if !slices.Equal(is.Disks, slots) {
		problems.Addf(check.Join(at, "disks"), "VM %d has the disks [%s], not [%s]: write what is there",
			m.id(), strings.Join(is.Disks, " "), strings.Join(slots, " "))
	}
	m.compareFirmware(is, at, problems)
	if cd, ok := m.inputs["cdrom"].(map[string]any); ok && cd["fileId"] == unknown {
		slot, _ := cd["interface"].(string)
		cd["fileId"] = is.CDs[slot]
	}
	if path := findUnknown("", m.inputs); path != "" {
		problems.Addf(at, "%s of VM %d is known only once up has run: such a node cannot be adopted", path, m.id())
	}
}

// compareFirmware records the differences in what the provider makes a new VM for. They would stay as they are, and the
// stack file would not say what is there.
func (m *planned) compareFirmware(is proxmox.Machine, at string, problems *check.List) {
	efi := ""
	if disk, ok := m.inputs["efiDisk"].(map[string]any); ok {
		kind, _ := disk["type"].(string)
		format, _ := disk["fileFormat"].(string)
		keys, _ := disk["preEnrolledKeys"].(bool)
		efi = proxmox.EFIDisk(kind, format, keys)
	}
	if is.EFIDisk != efi {
		problems.Addf(check.Join(at, "efiDisk"), "VM %d has %s, not %s: write what is there (bios, efiDisk.type, efiDisk.format, "+
			"efiDisk.preEnrolledKeys), since another one needs a new VM", m.id(), orNone(is.EFIDisk, "EFI disk"), orNone(efi, "EFI disk"))
	}
	version := ""
	if tpm, ok := m.inputs["tpmState"].(map[string]any); ok {
		version, _ = tpm["version"].(string)
	}
	if is.TPM != version {
		problems.Addf(check.Join(at, "tpm"), "VM %d has %s, not %s: write what is there, since another one needs a new VM",
			m.id(), orNone(is.TPM, "TPM"), orNone(version, "TPM"))
	}
}

// orNone names a thing with what describes it, or that there is none.
func orNone(what, thing string) string {
	if what == "" {
		return "no " + thing
	}

	return "the " + thing + " " + what
}

// readReplaced returns the VMs that a preview would replace or delete, by URN.
func readReplaced(text []byte) ([]string, error) {
	var preview struct {
		Steps []struct {
			Op  string `json:"op"`
			URN string `json:"urn"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(text, &preview); err != nil {
		return nil, fmt.Errorf("reading the preview: %w", err)
	}
	replaced := map[string]bool{}
	for _, step := range preview.Steps {
		if strings.Contains(step.URN, machineType+"::") && (strings.Contains(step.Op, "replace") || strings.Contains(step.Op, "delete")) {
			replaced[step.URN] = true
		}
	}

	return slices.Sorted(maps.Keys(replaced)), nil
}

// findUnknown returns the path of the first value that only an up knows.
func findUnknown(path string, v any) string {
	switch v := v.(type) {
	case string:
		if v == unknown {
			return path
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := findUnknown(check.Join(path, key), v[key]); found != "" {
				return found
			}
		}
	case []any:
		for i, e := range v {
			if found := findUnknown(check.Index(path, i), e); found != "" {
				return found
			}
		}
	}

	return ""
}
