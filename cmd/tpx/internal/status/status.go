// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package status shows what a cluster's nodes say of themselves: stages, versions, etcd, Kubernetes, and
// when certificates end.
package status

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talos-proxmox/talos-proxmox/cmd/tpx/internal/state"
	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/talosapi"
)

// callTimeout bounds each question.
const callTimeout = 10 * time.Second

// Report holds what a cluster says.
type Report struct {
	Cluster string `json:"cluster"`
	Nodes   []Node `json:"nodes"`
	// Kubernetes is why its API says nothing; empty when it does.
	Kubernetes   string        `json:"kubernetesError,omitempty"`
	Certificates []Certificate `json:"certificates"`
}

// Node holds what one node says; Error is why it does not.
type Node struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Role    string `json:"role"`
	Stage   string `json:"stage,omitempty"`
	Talos   string `json:"talos,omitempty"`
	// WantTalos is the version that the stack has.
	WantTalos string `json:"wantTalos,omitempty"`
	Kubelet   string `json:"kubelet,omitempty"`
	Ready     string `json:"ready,omitempty"`
	// Etcd is "member", "learner", "no member" or why it says nothing; empty for a worker.
	Etcd  string `json:"etcd,omitempty"`
	Error string `json:"error,omitempty"`
}

// Certificate names a certificate and when it expires.
type Certificate struct {
	Of   string    `json:"of"`
	Ends time.Time `json:"ends"`
}

// Healthy reports whether every node runs, is ready, and is a member where it should be.
func (r Report) Healthy() bool {
	for _, n := range r.Nodes {
		if n.Error != "" || n.Stage != "running" || n.Ready != "yes" || (n.Role == "controlplane" && n.Etcd != "member") {
			return false
		}
	}

	return r.Kubernetes == ""
}

// Collect asks the cluster's nodes, all at once.
func Collect(ctx context.Context, c state.Cluster) (Report, error) {
	r := Report{Cluster: c.Name, Nodes: make([]Node, len(c.Nodes)), Certificates: certificates(c)}
	remote, err := talosapi.NewRemote(c.Talosconfig, c.Cluster)
	if err != nil {
		return r, fmt.Errorf("cluster %q: %w", c.Name, err)
	}
	defer remote.Close() //nolint:errcheck // nothing was written
	api, err := remote.Talos(ctx)
	if err != nil {
		return r, fmt.Errorf("cluster %q: %w", c.Name, err)
	}

	var wait sync.WaitGroup
	for i, expected := range c.Nodes {
		wait.Go(func() {
			call, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			r.Nodes[i] = askNode(call, api, expected.Member)
			r.Nodes[i].WantTalos = expected.Image.Version
		})
	}
	var kubelets map[string]corev1.Node
	var kubernetes error
	wait.Go(func() {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		kubelets, kubernetes = askKubernetes(call, remote)
	})
	wait.Wait()
	if kubernetes != nil {
		r.Kubernetes = oneLine(kubernetes)
	}
	for i, expected := range c.Nodes {
		if n, ok := kubelets[expected.Hostname]; ok {
			r.Nodes[i].Kubelet, r.Nodes[i].Ready = n.Status.NodeInfo.KubeletVersion, ready(n)
		}
	}

	return r, nil
}

func askNode(ctx context.Context, api cluster.Talos, m cluster.Member) Node {
	n := Node{Name: m.Name, Address: m.Address, Role: "worker"}
	if m.ControlPlane {
		n.Role = "controlplane"
	}
	var err error
	if n.Talos, err = api.Version(ctx, m.Address); err != nil {
		n.Error = oneLine(err)

		return n
	}
	if n.Stage, _, err = api.Stage(ctx, m.Address); err != nil {
		n.Error = oneLine(err)
	}
	if m.ControlPlane {
		n.Etcd = membership(ctx, api, m)
	}

	return n
}

// membership returns what etcd of a control plane says of the node itself.
func membership(ctx context.Context, api cluster.Talos, m cluster.Member) string {
	members, err := api.EtcdMembers(ctx, m.Address)
	if err != nil {
		return oneLine(err)
	}
	for _, e := range members {
		if e.Hostname != m.Hostname {
			continue
		}
		if e.Learner {
			return "learner"
		}

		return "member"
	}

	return "no member"
}

func askKubernetes(ctx context.Context, remote *talosapi.Remote) (map[string]corev1.Node, error) {
	api, err := remote.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of Kubernetes: %w", err)
	}
	nodes := map[string]corev1.Node{}
	for _, n := range list.Items {
		nodes[n.Name] = n
	}

	return nodes, nil
}

func ready(n corev1.Node) string {
	word := "no"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			word = "yes"
		}
	}
	if n.Spec.Unschedulable {
		word += ", cordoned"
	}

	return word
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }

// certificates returns the ends of the certificates that the stack hands out.
func certificates(c state.Cluster) []Certificate {
	var all []Certificate
	add := func(of string, text []byte) {
		if ends, err := endOf(text); err == nil {
			all = append(all, Certificate{Of: of, Ends: ends})
		}
	}
	if config, err := clientcmd.Load([]byte(c.Kubeconfig)); err == nil && config.Contexts[config.CurrentContext] != nil {
		at := config.Contexts[config.CurrentContext]
		if user := config.AuthInfos[at.AuthInfo]; user != nil {
			add("kubeconfig", user.ClientCertificateData)
		}
		if k := config.Clusters[at.Cluster]; k != nil {
			add("Kubernetes CA", k.CertificateAuthorityData)
		}
	}
	if config, err := clientconfig.FromString(c.Talosconfig); err == nil && config.Contexts[config.Context] != nil {
		at := config.Contexts[config.Context]
		for _, f := range []struct{ of, text string }{{"talosconfig", at.Crt}, {"Talos CA", at.CA}} {
			if decoded, err := base64.StdEncoding.DecodeString(f.text); err == nil {
				add(f.of, decoded)
			}
		}
	}

	return all
}

func endOf(text []byte) (time.Time, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, errors.New("is no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("is no certificate: %w", err)
	}

	return certificate.NotAfter, nil
}

// Print writes the report as tables.
func (r Report) Print(out io.Writer, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "cluster %s\n", r.Cluster)
	fmt.Fprintln(table, "NODE\tADDRESS\tROLE\tSTAGE\tTALOS\tKUBELET\tREADY\tETCD\t")
	for _, n := range r.Nodes {
		talos := n.Talos
		if n.WantTalos != "" && talos != "" && talos != n.WantTalos {
			talos += " (stack: " + n.WantTalos + ")"
		}
		stage := n.Stage
		if n.Error != "" {
			stage = "? " + n.Error
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", n.Name, n.Address, n.Role, stage, talos, n.Kubelet, n.Ready, n.Etcd)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if r.Kubernetes != "" {
		fmt.Fprintln(out, "Kubernetes says nothing:", r.Kubernetes)
	}
	const day = 24 * time.Hour
	for _, c := range r.Certificates {
		fmt.Fprintf(out, "%s ends on %s, in %d days\n", c.Of, c.Ends.UTC().Format(time.DateOnly), int(c.Ends.Sub(now)/day))
	}

	return nil
}

// PrintJSON writes reports as JSON.
func PrintJSON(out io.Writer, reports []Report) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")

	return encoder.Encode(reports)
}
