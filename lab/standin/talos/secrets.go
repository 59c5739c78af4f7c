// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"go.yaml.in/yaml/v3"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

// renewBefore: a client certificate that ends within it is issued anew.
const renewBefore = 1 // months

// secretLeaves returns the sensitive parts of machine secrets.
func secretLeaves() []string {
	return []string{
		"machineSecrets.certs.etcd.key", "machineSecrets.certs.k8s.key", "machineSecrets.certs.k8sAggregator.key",
		"machineSecrets.certs.k8sServiceaccount.key", "machineSecrets.certs.os.key",
		"machineSecrets.cluster.secret", "machineSecrets.secrets.bootstrapToken",
		"machineSecrets.secrets.secretboxEncryptionSecret", "machineSecrets.secrets.aescbcEncryptionSecret",
		"machineSecrets.trustdinfo.token", "clientConfiguration.clientKey",
	}
}

func machineSecrets() *bridge.Resource {
	return &bridge.Resource{
		Args: &machine.SecretsArgs{}, State: machine.Secrets{},
		Framework: true,
		Secrets:   secretLeaves(),
		Computed:  []string{"clientConfiguration", "machineSecrets", "talosVersion"},
		Validate: func(p *bridge.Problems, in bridge.Tree) {
			if v := in.Str("talosVersion"); v != "" {
				if _, err := config.ParseContractFromVersion(v); err != nil {
					p.Refuse(fmt.Errorf("Invalid version: %w", err)) // the plugin's text
				}
			}
		},
		// An older Talos may not know the secrets of a newer one: all of them are made anew.
		ReplaceIf: func(c bridge.Change, op *bridge.Op) bool {
			return c.Path.String() == "talosVersion" && !c.Unknown &&
				lowered(op.State.Str("talosVersion"), contractOf(op.In))
		},
		Stale: func(op *bridge.Op) []string {
			if ends, err := certificateEnd(op.State.Str("clientConfiguration.clientCertificate")); err == nil &&
				ends.Before(time.Now().AddDate(0, renewBefore, 0)) {
				return []string{"clientConfiguration"}
			}
			return nil
		},
		// What another version may make anew is not known until it is written down.
		Recompute: func([]bridge.Change) []string { return []string{"clientConfiguration", "machineSecrets"} },
		Plan: func(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
			if op.Unknown["talosVersion"] {
				return nil, nil // nothing is known
			}
			return bridge.Tree{"talosVersion": contractOf(op.In)}, nil
		},
		Create: createSecrets,
		Read:   readSecrets,
		Update: updateSecrets,
	}
}

func contractOf(in bridge.Tree) string {
	if v := in.Str("talosVersion"); v != "" {
		return v
	}

	return defaultContract
}

func lowered(was, now string) bool {
	a, errA := semver.ParseTolerant(strings.TrimPrefix(was, "v"))
	b, errB := semver.ParseTolerant(strings.TrimPrefix(now, "v"))

	return errA == nil && errB == nil && b.LT(a)
}

func createSecrets(_ context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	contract, err := config.ParseContractFromVersion(contractOf(op.In))
	if err != nil {
		return "", nil, fmt.Errorf("failed to validate talos version: %w", err)
	}

	bundle, err := secrets.NewBundle(secrets.NewFixedClock(time.Now()), contract)
	if err != nil {
		return "", nil, fmt.Errorf("failed to generate secrets bundle: %w", err)
	}

	out, err := secretsOutputs(bundle, contractOf(op.In))

	return "machine_secrets", out, err
}

// readSecrets imports a secrets bundle from the file that the id names; what is in the state is true.
func readSecrets(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
	if len(op.State) > 0 {
		return op.State, nil
	}

	text, err := os.ReadFile(op.ID)
	if err != nil {
		return nil, fmt.Errorf("failed to import state: %w", err)
	}

	var bundle *secrets.Bundle
	if err := yaml.Unmarshal(text, &bundle); err != nil {
		return nil, errors.New("failed to unmarshal machine secrets") // the cause would quote them
	}

	version := "v1.3"
	if bundle.Secrets.AESCBCEncryptionSecret != "" {
		version = "v1.2"
	}
	op.ID = "machine_secrets"

	return secretsOutputs(bundle, version)
}

func updateSecrets(_ context.Context, op *bridge.Op) (bridge.Tree, error) {
	out := bridge.Tree{
		"talosVersion":   contractOf(op.In),
		"machineSecrets": op.State.At("machineSecrets"), "clientConfiguration": op.State.At("clientConfiguration"),
	}
	if !op.Changed("clientConfiguration") {
		return out, nil
	}

	bundle, err := bundleOf(op.State.Sub("machineSecrets"))
	if err != nil {
		return nil, err
	}

	fresh, err := secretsOutputs(bundle, contractOf(op.In))
	if err != nil {
		return nil, err
	}
	out["clientConfiguration"] = fresh["clientConfiguration"]

	return out, nil
}

// secretsOutputs shapes a bundle as the SDK has it and issues a client certificate.
func secretsOutputs(b *secrets.Bundle, version string) (bridge.Tree, error) {
	if b.Clock == nil {
		b.Clock = secrets.NewFixedClock(time.Now())
	}

	input, err := generate.NewInput("", "", constants.DefaultKubernetesVersion, generate.WithSecretsBundle(b))
	if err != nil {
		return nil, fmt.Errorf("generating the client configuration: %w", err)
	}

	talosconfig, err := input.Talosconfig()
	if err != nil {
		return nil, fmt.Errorf("generating the client configuration: %w", err)
	}
	current := talosconfig.Contexts[talosconfig.Context]

	certs := bridge.Tree{
		"etcd": pair(b.Certs.Etcd.Crt, b.Certs.Etcd.Key), "k8s": pair(b.Certs.K8s.Crt, b.Certs.K8s.Key),
		"k8sServiceaccount": bridge.Tree{"key": encode(b.Certs.K8sServiceAccount.Key)},
		"os":                pair(b.Certs.OS.Crt, b.Certs.OS.Key),
		"k8sAggregator":     pair(b.Certs.K8sAggregator.Crt, b.Certs.K8sAggregator.Key),
	}

	keys := bridge.Tree{
		"bootstrapToken":            b.Secrets.BootstrapToken,
		"secretboxEncryptionSecret": b.Secrets.SecretboxEncryptionSecret,
	}
	if b.Secrets.AESCBCEncryptionSecret != "" { // Talos before 1.3
		keys["aescbcEncryptionSecret"] = b.Secrets.AESCBCEncryptionSecret
	}

	return bridge.Tree{
		"talosVersion": version,
		"machineSecrets": bridge.Tree{
			"certs": certs, "secrets": keys,
			"cluster":    bridge.Tree{"id": b.Cluster.ID, "secret": b.Cluster.Secret},
			"trustdinfo": bridge.Tree{"token": b.TrustdInfo.Token},
		},
		"clientConfiguration": bridge.Tree{
			"caCertificate": current.CA, "clientCertificate": current.Crt, "clientKey": current.Key,
		},
	}, nil
}

func pair(crt, key []byte) bridge.Tree {
	return bridge.Tree{"cert": encode(crt), "key": encode(key)}
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func certificateEnd(encoded string) (time.Time, error) {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return time.Time{}, errors.New("failed to decode client certificate")
	}

	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, errors.New("failed to decode client certificate: failed to parse PEM block")
	}

	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fmt.Errorf("failed to parse client certificate: %w", err)
	}

	return cert.NotAfter, nil
}
