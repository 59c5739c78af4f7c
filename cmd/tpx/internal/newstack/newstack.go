// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package newstack writes a stack's first file from the answers to a few questions.
package newstack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/pulumi"
	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/stackfile"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
	"github.com/talos-proxmox/talos-proxmox/stack"
)

// Answers hold what a first stack file is made from. Empty ones are asked for.
type Answers struct {
	Name, Endpoint, Host, Datastore, Bridge, Gateway, VIP string
	// First is the first node's address with its prefix length; the others follow it.
	First string
	// ControlPlanes and Workers say how many there are; Version is that of Proxmox VE.
	ControlPlanes, Workers, Version string
	// VMID is the first node's; the others follow it.
	VMID string
	// Git is the repository that Flux follows; none when empty.
	Git string
}

// question asks for one answer.
type question struct {
	text, fallback string
	into           *string
	check          func(string) error
}

func (a *Answers) questions(stackName string) []question {
	return []question{
		{"Name of the cluster", stackName, &a.Name, filled},
		{"Proxmox VE's API", "https://pve.example.com:8006", &a.Endpoint, isEndpoint},
		{"Proxmox VE's release (8 or 9)", "9", &a.Version, oneOf("8", "9")},
		{"Host that the nodes run on, as Proxmox VE names it", "pve", &a.Host, filled},
		{"Datastore for the nodes' disks", "local-lvm", &a.Datastore, filled},
		{"Bridge that the nodes are on", "vmbr0", &a.Bridge, filled},
		{"Address of the first node, with prefix length; the others follow it", "192.168.1.41/24", &a.First, isPrefix},
		{"Gateway of that network", "", &a.Gateway, isAddress},
		{"Address of the Kubernetes API, free, in the same network", "", &a.VIP, isAddress},
		{"Control planes (1, 3 or 5)", "3", &a.ControlPlanes, oneOf("1", "3", "5")},
		{"Workers", "0", &a.Workers, isCount},
		{"Id of the first VM; the others follow it", "900", &a.VMID, isCount},
	}
}

// Ask asks on out for every answer that is missing and reads it from in, a line each; an empty line takes
// what is proposed. Without a person there (in is nil), what is proposed is taken, and what has no proposal
// is missing.
func (a *Answers) Ask(stackName string, in io.Reader, out io.Writer) error {
	var lines *bufio.Scanner
	if in != nil {
		lines = bufio.NewScanner(in)
	}
	var missing []error
	for _, q := range a.questions(stackName) {
		if q.fallback == "" {
			q.fallback = a.propose(q.into)
		}
		if *q.into == "" {
			if err := q.ask(lines, out); err != nil {
				return err
			}
		}
		if err := q.check(*q.into); err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", q.text, err))
		}
	}

	return errors.Join(missing...)
}

// ask puts one question until its answer will do.
func (q question) ask(lines *bufio.Scanner, out io.Writer) error {
	if lines == nil {
		*q.into = q.fallback

		return nil
	}
	for {
		fmt.Fprintf(out, "%s [%s]: ", q.text, q.fallback)
		if !lines.Scan() {
			return errors.New("the answers ended: nothing is written")
		}
		*q.into = strings.TrimSpace(lines.Text())
		if *q.into == "" {
			*q.into = q.fallback
		}
		err := q.check(*q.into)
		if err == nil {
			return nil
		}
		fmt.Fprintln(out, " ", err)
	}
}

// propose returns addresses that follow from the first node's.
func (a *Answers) propose(of *string) string {
	first, err := spec.ParsePrefix(a.First, "")
	if err != nil {
		return ""
	}
	switch of {
	case &a.Gateway:
		return first.Masked().Addr().Next().String()
	case &a.VIP:
		return first.Addr().Prev().String()
	default:
		return ""
	}
}

func filled(text string) error {
	if text == "" || strings.ContainsAny(text, " \t\"'{}[]:#") {
		return fmt.Errorf("%q is no name", text)
	}

	return nil
}

func isEndpoint(text string) error {
	rest, ok := strings.CutPrefix(text, "https://")
	if !ok || rest == "" || strings.ContainsAny(rest, " \t\"'{}[]#") {
		return fmt.Errorf("%q is no endpoint: write https://<host>:8006", text)
	}

	return nil
}

func oneOf(words ...string) func(string) error {
	return func(text string) error {
		if !slices.Contains(words, text) {
			return fmt.Errorf("%q is none of %s", text, strings.Join(words, ", "))
		}

		return nil
	}
}

func isPrefix(text string) error {
	if _, err := spec.ParsePrefix(text, ""); err != nil {
		return fmt.Errorf("%q is no address with prefix length, such as 192.168.1.41/24", text)
	}

	return nil
}

func isAddress(text string) error {
	if _, err := spec.ParseAddr(text); err != nil {
		return fmt.Errorf("%q is no address, such as 192.168.1.1", text)
	}

	return nil
}

func isCount(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 0 {
		return fmt.Errorf("%q is no number", text)
	}

	return nil
}

// Write writes the stack file, once it has passed all rules. A file that is there stays.
func Write(p pulumi.Project, cli pulumi.CLI, a Answers) (string, error) {
	text, err := a.render(p.Name)
	if err != nil {
		return "", err
	}
	source, err := stack.SourceOf(cli.FileStack(), []byte(text), stackfile.StandIn)
	if err != nil {
		return "", err
	}
	source.Project = p.Name
	if _, err := stack.Load(source); err != nil {
		return "", err
	}
	path := cli.ConfigFile
	if path == "" {
		path = p.StackFile(cli.Stack)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", fmt.Errorf("writing the stack file: %w", err)
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("writing the stack file: %w", err)
	}

	return path, nil
}

// node describes one node of the file.
type node struct {
	Name, Role, Address string
	ID                  int
}

// nodes returns the nodes with addresses and ids that follow one another.
func (a Answers) nodes() []node {
	first, _ := spec.ParsePrefix(a.First, "")
	id, _ := strconv.Atoi(a.VMID)
	var all []node
	at := first.Addr()
	for _, group := range []struct{ role, prefix, count string }{
		{"controlplane", "cp-", a.ControlPlanes}, {"worker", "work-", a.Workers},
	} {
		count, _ := strconv.Atoi(group.count)
		for i := range count {
			for slices.Contains(a.taken(), at.String()) {
				at = at.Next()
			}
			all = append(all, node{group.prefix + strconv.Itoa(i+1), group.role, at.String(), id + len(all)})
			at = at.Next()
		}
	}

	return all
}

// taken returns addresses that no node may have.
func (a Answers) taken() []string {
	all := []string{a.VIP, a.Gateway}
	if u, err := url.Parse(a.Endpoint); err == nil {
		all = append(all, u.Hostname())
	}

	return all
}

func (a Answers) render(project string) (string, error) {
	first, err := spec.ParsePrefix(a.First, "")
	if err != nil {
		return "", fmt.Errorf("%q is no address with prefix length: %w", a.First, err)
	}
	parsed, err := template.New("stack").Parse(fileTemplate)
	if err != nil {
		return "", fmt.Errorf("reading the template: %w", err)
	}
	var text strings.Builder
	err = parsed.Execute(&text, map[string]any{
		"A": a, "Key": project + ":", "Nodes": a.nodes(), "Subnet": first.Masked().String(),
		"Alone": a.Workers == "0", "Flux": versions.FluxChart,
	})
	if err != nil {
		return "", fmt.Errorf("writing the stack file: %w", err)
	}

	return text.String(), nil
}

// schemaURL is where editors find the schema of stack files.
const schemaURL = "https://raw.githubusercontent.com/talos-proxmox/talos-proxmox/main/schema/stack.schema.json"

const fileTemplate = `# yaml-language-server: $schema=` + schemaURL + `
config:
  {{.Key}}proxmox:
    endpoint: {{.A.Endpoint}}
    version: {{.A.Version}}
    # The token: export PROXMOX_VE_API_TOKEN='user@realm!name=uuid', or as a secret of this file:
    #   pulumi config set --secret --path proxmox.apiToken
    hosts:
      {{.A.Host}}: {datastore: {{.A.Datastore}}}
  {{.Key}}image:
    extensions: [siderolabs/qemu-guest-agent]
  {{.Key}}cluster:
    name: {{.A.Name}}
    vip: {{.A.VIP}}
{{- if .Alone}}
    allowSchedulingOnControlPlanes: true
{{- end}}
  {{.Key}}defaults:
    all:
      host: {{.A.Host}}
      cpu: 2
      memory: 4096
      osDisk: {size: 32}
      networks:
        lan: {bridge: {{.A.Bridge}}, subnet: {{.Subnet}}, gateway: {{.A.Gateway}}}
  {{.Key}}nodes:
{{- range .Nodes}}
    {{.Name}}: {role: {{.Role}}, vmId: {{.ID}}, networks: {lan: {address: {{.Address}}}}}
{{- end}}
  {{.Key}}gitops:
{{- if .A.Git}}
    provider: flux
    chart: {version: {{.Flux}}}
    git:
      url: {{.A.Git}}
{{- else}}
    provider: none
{{- end}}
`
