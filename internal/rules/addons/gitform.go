// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package addons

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// shortest is the shortest time between two looks at a repository, and to wait for one, that makes sense.
const shortest = 10 * time.Second

var (
	// notInRef is what git takes in no name of a branch or tag (git help check-ref-format).
	notInRef = regexp.MustCompile(`[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(/|$)|^[-/.]|[/.]$|/\.`)
	numbers  = regexp.MustCompile(`^[0-9]+$`)
	// registryForm is a registry with a path, without scheme and tag.
	registryForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	// imageForm is the name of an image, with or without tag and digest.
	imageForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
)

// references checks the names of branch and tag, and that a commit is whole.
func (r *rules) references(g spec.Git) {
	for name, ref := range map[string]*string{"branch": g.Branch, "tag": g.Tag} {
		at := "gitops.git." + name
		switch text := spec.Value(ref); {
		case ref == nil:
		case strings.HasPrefix(text, "refs/"):
			bare := text[strings.LastIndexByte(text, '/')+1:]
			r.Addf(at, "%q is the whole name of the reference: write %s", text, bare)
		case notInRef.MatchString(text):
			r.Addf(at, "%q is no name that git takes for a %s", text, name)
		}
	}
	if g.Commit != nil && commitForm.MatchString(*g.Commit) && len(*g.Commit) != 40 && len(*g.Commit) != 64 {
		r.Addf("gitops.git.commit", "%q is the beginning of a commit's id, by which none can be fetched: write all 40 digits", *g.Commit)
	}
	for name, d := range map[string]*spec.Duration{"interval": g.Interval, "syncInterval": g.SyncInterval, "timeout": g.Timeout} {
		r.longEnough("gitops.git."+name, d)
	}
}

func (r *rules) longEnough(at string, d *spec.Duration) {
	if d != nil && *d > 0 && time.Duration(*d) < shortest {
		r.Addf(at, "%s is too short for a git host to answer: write %s or more", time.Duration(*d), shortest)
	}
}

// accounts checks what credentials say of who asks.
func (r *rules) accounts(a spec.GitAuth) {
	const at = "gitops.git.auth"
	if app := a.GitHubApp; app != nil {
		for name, text := range map[string]string{"id": app.ID, "installationId": app.InstallationID} {
			if !numbers.MatchString(text) {
				r.Addf(check.Join(at, "githubApp", name), "%q is no number: write the one that GitHub shows", text)
			}
		}
	}
}

// fluxParts checks that the components of Flux are enough to follow git.
func (r *rules) fluxParts(g spec.GitOps) {
	const at = "gitops.components"
	r.Twice(at, g.Components)
	if g.Components == nil || *g.Provider != "flux" {
		return
	}
	if len(g.Components) == 0 {
		r.Addf(at, "is empty: name at least source-controller and kustomize-controller, or remove it for all")

		return
	}
	for _, name := range []string{"source-controller", "kustomize-controller"} {
		if !slices.Contains(g.Components, name) && !r.Wrong(at) {
			r.Addf(at, "lack %s, without which nothing follows git: add it", name)
		}
	}
}
