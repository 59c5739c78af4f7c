// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package deploykey registers a public key with a repository of Gitea or Forgejo, read-only, and takes it away
// again. Pulumi runs it through the command plugin, so that a plain destroy does too; what it needs comes from the
// environment, since arguments are for everybody to read.
package deploykey

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"code.gitea.io/sdk/gitea"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/internal/deploykeyenv"
)

// Key describes a deploy key and its repository.
type Key struct {
	// API of the git host, https://git.example.com/api/v1.
	API string
	// Repository is its owner and name, lab/demo.
	Repository string
	// Title is what people see at the git host.
	Title string
	// Public is the public key, as in an authorized_keys file.
	Public string
	// Token may administer the repository's keys.
	Token string
}

// FromEnvironment reads a key from the variables that Pulumi sets.
func FromEnvironment(getenv func(string) string) (Key, error) {
	k := Key{
		API: getenv(deploykeyenv.API), Repository: getenv(deploykeyenv.Repository), Title: getenv(deploykeyenv.Title),
		Public: getenv(deploykeyenv.Key), Token: cmp.Or(getenv(deploykeyenv.Token), getenv(deploykeyenv.LastToken)),
	}
	for name, value := range map[string]string{
		deploykeyenv.API: k.API, deploykeyenv.Repository: k.Repository, deploykeyenv.Key: k.Public, deploykeyenv.LastToken: k.Token,
	} {
		if value == "" {
			return k, fmt.Errorf("%s is not set: this command is run by Pulumi", name)
		}
	}

	return k, nil
}

// host names the git host, and the repository's owner and name.
type host struct {
	client      *gitea.Client
	owner, name string
}

func (k Key) host(ctx context.Context) (host, error) {
	owner, name, ok := strings.Cut(k.Repository, "/")
	if !ok {
		return host{}, fmt.Errorf("%q is no repository: write owner/name", k.Repository)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(k.API, "/"), "/api/v1")
	// The version is not asked for: Forgejo counts in its own way, and deploy keys are older than both.
	client, err := gitea.NewClient(base, gitea.SetGiteaVersion(""), gitea.SetToken(k.Token), gitea.SetContext(ctx))
	if err != nil {
		return host{}, fmt.Errorf("reaching the git host: %w", err)
	}

	return host{client: client, owner: owner, name: name}, nil
}

// Add registers the key and returns its number at the git host. One that is there already stays.
func (k Key) Add(ctx context.Context) (int64, error) {
	h, err := k.host(ctx)
	if err != nil {
		return 0, err
	}
	there, err := k.find(h)
	switch {
	case err != nil:
		return 0, err
	case there != nil && !there.ReadOnly:
		return 0, fmt.Errorf("repository %s has the deploy key already, as %q, and lets it write: remove it there, then run up again",
			k.Repository, there.Title)
	case there != nil:
		return there.ID, nil
	}
	made, res, err := h.client.CreateDeployKey(h.owner, h.name, gitea.CreateKeyOption{Title: k.Title, Key: k.Public, ReadOnly: true})
	if err != nil {
		return 0, k.failed("registering the deploy key", res, err)
	}

	return made.ID, nil
}

// Remove takes the key away. One that is gone is gone.
func (k Key) Remove(ctx context.Context) error {
	h, err := k.host(ctx)
	if err != nil {
		return err
	}
	there, err := k.find(h)
	if err != nil || there == nil {
		return err
	}
	res, err := h.client.DeleteDeployKey(h.owner, h.name, there.ID)
	if err != nil && status(res) != http.StatusNotFound {
		return k.failed("removing the deploy key", res, err)
	}

	return nil
}

// pageSize is how many keys the git host is asked for at once; hosts allow no more.
const pageSize = 50

// find returns the key as the git host has it; nil where it has none of this repository.
func (k Key) find(h host) (*gitea.DeployKey, error) {
	wanted, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.Public))
	if err != nil {
		return nil, fmt.Errorf("reading the deploy key: %w", err)
	}
	for page := 1; ; page++ {
		keys, res, err := h.client.ListDeployKeys(h.owner, h.name, gitea.ListDeployKeysOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: pageSize},
		})
		if status(res) == http.StatusNotFound {
			return nil, fmt.Errorf("the git host knows no repository %s, or does not show it to the token", k.Repository)
		}
		if err != nil {
			return nil, k.failed("listing deploy keys", res, err)
		}
		for _, have := range keys {
			if public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(have.Key)); err == nil && bytes.Equal(public.Marshal(), wanted.Marshal()) {
				return have, nil
			}
		}
		if len(keys) < pageSize {
			return nil, nil
		}
	}
}

// failed explains an answer of the git host.
func (k Key) failed(what string, res *gitea.Response, err error) error {
	switch code := status(res); code {
	case 0:
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err
		}

		return fmt.Errorf("%s: %s does not answer: %w", what, k.API, err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%s: the git host answers %d to the token: run up with one that may administer the keys of "+
			"repository %s (gitops.git.auth.register.token), or give it as %s", what, code, k.Repository, deploykeyenv.Token)
	default:
		return fmt.Errorf("%s: the git host answers %d: %w", what, code, err)
	}
}

// status returns the HTTP status of an answer, 0 where there is none.
func status(res *gitea.Response) int {
	if res == nil || res.Response == nil {
		return 0
	}

	return res.StatusCode
}
