// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package githost

import (
	"net/url"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
	"github.com/talos-proxmox/talos-proxmox/lab/standin/wire"
)

// Versions of the genuine plugins.
const (
	githubVersion  = "6.12.1"
	gitlabVersion  = "9.5.0"
	commandVersion = "1.1.3"
)

// GitHub returns the provider github.
func GitHub() *bridge.Package {
	k := keys{
		at: func(a *api, in bridge.Tree) string { return "/repos/" + a.owner + "/" + in.Str("repository") + "/keys" },
		body: func(in bridge.Tree) map[string]any {
			return map[string]any{"title": in.Str("title"), "key": in.Str("key"), "read_only": in.Bool("readOnly")}
		},
		id: func(in bridge.Tree, number string) string { return in.Str("repository") + ":" + number },
	}

	return &bridge.Package{
		Name: "github", Version: githubVersion, Config: githubConfigInput{}, ConfigSecrets: []string{"token"},
		Configure: func(_ *wire.Conn, config bridge.Tree) (any, error) {
			base := config.Str("baseUrl")
			if base == "" {
				base = "https://api.github.com/"
			}

			return &api{base: base, header: "Authorization: Bearer ", token: config.Str("token"), owner: config.Str("owner")}, nil
		},
		Resources: map[string]*bridge.Resource{
			"github:index/repositoryDeployKey:RepositoryDeployKey": {
				Args: githubKeyInput{}, State: githubKey{}, Replace: []string{"key", "readOnly", "repository", "title"},
				Create: k.create, Read: k.read, Delete: k.remove,
			},
		},
	}
}

// GitLab returns the provider gitlab.
func GitLab() *bridge.Package {
	k := keys{
		at: func(_ *api, in bridge.Tree) string {
			return "/projects/" + url.PathEscape(in.Str("project")) + "/deploy_keys"
		},
		body: func(in bridge.Tree) map[string]any {
			return map[string]any{"title": in.Str("title"), "key": in.Str("key"), "can_push": in.Bool("canPush")}
		},
		id: func(in bridge.Tree, number string) string { return in.Str("project") + ":" + number },
	}

	return &bridge.Package{
		Name: "gitlab", Version: gitlabVersion, Config: gitlabConfigInput{}, ConfigSecrets: []string{"token"},
		Configure: func(_ *wire.Conn, config bridge.Tree) (any, error) {
			base := config.Str("baseUrl")
			if base == "" {
				base = "https://gitlab.com/api/v4/"
			}

			return &api{base: base, header: "PRIVATE-TOKEN: ", token: config.Str("token")}, nil
		},
		Resources: map[string]*bridge.Resource{
			"gitlab:index/deployKey:DeployKey": {
				Args: gitlabKeyInput{}, State: gitlabKey{}, Replace: []string{"canPush", "key", "project", "title"},
				Create: k.create, Read: k.read, Delete: k.remove,
			},
		},
	}
}

// Command returns the provider command, of which it has local commands.
func Command() *bridge.Package {
	return &bridge.Package{
		Name: "command", Version: commandVersion, Config: noConfigInput{},
		Configure: func(*wire.Conn, bridge.Tree) (any, error) { return struct{}{}, nil },
		Resources: map[string]*bridge.Resource{
			"command:local:Command": {
				Args: localCommandInput{}, State: localCommand{}, Replace: []string{"triggers"},
				Computed: []string{"stdout", "stderr"},
				Create:   runCreate, Update: runUpdate, Delete: runDelete,
			},
		},
	}
}
