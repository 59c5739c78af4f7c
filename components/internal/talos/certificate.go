// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talos-proxmox/talos-proxmox/components/internal/stash"
	"github.com/talos-proxmox/talos-proxmox/internal/talossecrets"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

const (
	// certificateLifetime is that of an administrator's certificate for the Talos API.
	certificateLifetime = 365 * 24 * time.Hour
	// certificateTerm is how often it is made anew: half its life before it ends at the latest.
	certificateTerm = certificateLifetime / 2
)

// issueCertificate issues the administrator's certificate from the cluster's own authority, and keeps it in the
// state. A new one is made in each half of a year, and whenever the stack asks for it.
func issueCertificate(s *Session, made *Secrets, opts ...pulumi.ResourceOption) error {
	fresh := made.Bundle.ApplyT(func(v any) (map[string]string, error) {
		bundle, ok := v.(*secrets.Bundle)
		if !ok {
			return nil, errors.New("the cluster's secrets are missing")
		}
		client, err := talossecrets.NewClientConfiguration(bundle, time.Now(), certificateLifetime)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", s.Name, err)
		}

		return map[string]string{"ca": client.CaCertificate, "certificate": client.ClientCertificate, "key": client.ClientKey}, nil
	}).(pulumi.StringMapOutput)
	value := func(key string) pulumi.StringOutput { return fresh.MapIndex(pulumi.String(key)) }
	stored, err := stash.Persist(s.Ctx, s.Name+"-certificate",
		pulumi.StringMap{"ca": value("ca"), "certificate": value("certificate"), "key": value("key")},
		append(opts[:len(opts):len(opts)], pulumi.ReplacementTrigger(pulumi.String(certificateToken(s.Config.Lifecycle, time.Now()))))...)
	if err != nil {
		return err
	}
	made.CA, made.Certificate, made.Key = stored.Value("ca"), stored.Value("certificate"), stored.Value("key")

	return nil
}

// certificateToken returns a text that changes when a new certificate is due.
func certificateToken(l spec.Lifecycle, now time.Time) string {
	return fmt.Sprintf("%d/%d", spec.Value(l.RenewCertificates), now.Unix()/int64(certificateTerm/time.Second))
}
