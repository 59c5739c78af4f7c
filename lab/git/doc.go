// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package git is the site's git host. It answers under every name that the site's stacks give their
// git hosts: repositories by smart HTTP and by SSH, served by git itself, and the part of the APIs of
// Gitea, Forgejo, GitHub and GitLab that registers deploy keys.
//
// Anybody may read over HTTPS what is not marked private. Who writes, reads a private repository or
// calls the API shows the site's token. SSH takes deploy keys alone, each for its repository, and
// refuses a push with one that is read-only. A push to a repository that is not there makes it.
package git
