// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package components

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
	"github.com/talos-proxmox/talos-proxmox/internal/gitops"
	"github.com/talos-proxmox/talos-proxmox/internal/kubeapply"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// await registers what is done when Flux has applied the path, where somebody wants to wait for that.
// Its input says what must be applied, so that any change of it is waited for anew.
func (b *fluxBuilder) await(kubeconfig pulumi.StringInput, key pulumi.StringOutput, before []pulumi.Resource) error {
	if b.g.Await == nil || b.g.Git.URL == nil {
		return nil
	}
	known := newLateText(kubeconfig)
	timeout := time.Duration(*b.g.Await)
	followed := b.followed()
	wait, err := registerHook(b.ctx, FluxBootstrapType, b.name, "await", func(args *pulumi.ResourceHookArgs) error {
		text, err := known.get()
		if err != nil {
			return err
		}
		api, err := kubeapply.OpenObjects(text)
		if err != nil {
			return err
		}

		return kubeapply.WaitFluxSync(b.ctx.Context(), api, followed, cluster.DefaultPollOptions(timeout), reportTo(b.ctx, args.URN))
	})
	if err != nil {
		return err
	}
	digest, err := settingsDigest(gitops.GitRepository(b.g).Spec, gitops.Kustomization(b.g).Spec, b.g.Git.Auth, b.g.SOPS)
	if err != nil {
		return err
	}
	_, err = pulumi.NewStash(b.ctx, b.name+"-applied",
		&pulumi.StashArgs{Input: pulumi.StringMap{"settings": secretString(pulumi.String(digest)), "key": key}},
		append(b.after(before...), pulumi.ResourceHooks(&pulumi.ResourceHookBinding{
			BeforeCreate: []*pulumi.ResourceHook{wait}, BeforeUpdate: []*pulumi.ResourceHook{wait},
		}))...)
	if err != nil {
		return fmt.Errorf("registering what Flux %q applies: %w", b.name, err)
	}

	return nil
}

// followed is what Flux has to be content with.
func (b *fluxBuilder) followed() kubeapply.FluxSync {
	at := func(api, kind string) string {
		return fmt.Sprintf("/apis/%s/namespaces/%s/%s", api, *b.g.Namespace, kind)
	}

	return kubeapply.FluxSync{
		Repository:     at(gitops.GitRepositoryVersion, "gitrepositories") + "/" + gitops.FluxObject,
		Kustomizations: at(gitops.KustomizationVersion, "kustomizations"), Name: gitops.FluxObject,
	}
}

// settingsDigest is a fingerprint of settings; a secret among them counts with its value.
func settingsDigest(settings ...any) (string, error) {
	sum := sha256.New()
	for _, s := range settings {
		text, err := json.Marshal(s)
		if err != nil {
			return "", fmt.Errorf("reading settings: %w", err)
		}
		sum.Write(text)
		for _, secret := range secretsIn(s) {
			sum.Write([]byte(secret))
		}
	}

	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// secretsIn are the credentials that settings hold, which do not show when they are written.
func secretsIn(settings any) []string {
	switch s := settings.(type) {
	case *spec.GitAuth:
		if s == nil {
			return nil
		}
		secrets := []string{revealed(s.PrivateKey), revealed(s.Password)}
		if s.GitHubApp != nil {
			secrets = append(secrets, s.GitHubApp.PrivateKey.Reveal())
		}

		return secrets
	case *spec.SOPS:
		if s != nil {
			return []string{revealed(s.AgeKey)}
		}
	}

	return nil
}

// lateText is a text that becomes known during the run.
type lateText struct {
	known chan struct{}
	once  sync.Once
	text  string
}

func newLateText(text pulumi.StringInput) *lateText {
	l := &lateText{known: make(chan struct{})}
	text.ToStringOutput().ApplyT(func(text string) string {
		l.once.Do(func() {
			l.text = text
			close(l.known)
		})

		return ""
	})

	return l
}

// get waits for the text, which is on its way when a hook asks for it.
func (l *lateText) get() (string, error) {
	select {
	case <-l.known:
		return l.text, nil
	case <-time.After(handOver):
		return "", errors.New("the cluster's kubeconfig is not known")
	}
}
