// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package controller

import (
	"cmp"
	"fmt"
	"net/url"
	"os/exec"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"golang.org/x/crypto/ssh"

	"github.com/talos-proxmox/talos-proxmox/components/internal/hook"
	"github.com/talos-proxmox/talos-proxmox/components/internal/kube"
	"github.com/talos-proxmox/talos-proxmox/internal/deploykeyenv"
	"github.com/talos-proxmox/talos-proxmox/internal/versions"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// The plugins that register deploy keys are used by their tokens. Their SDKs cannot be had everywhere,
// and are dozens of times as large as the one resource that is used of each. Gitea and Forgejo have no
// plugin that takes a repository by its name: tpx calls their API, with their own client, in a command that
// another one undoes when the stack goes.
const (
	// GitHubProviderVersion is the version of the github plugin that deploy keys are registered with.
	GitHubProviderVersion = versions.GitHubPlugin
	// GitLabProviderVersion is the version of the gitlab plugin that deploy keys are registered with.
	GitLabProviderVersion = versions.GitLabPlugin
	// CommandProviderVersion is the version of the command plugin, which runs tpx for Gitea and Forgejo.
	CommandProviderVersion = versions.CommandPlugin
)

// registration describes a deploy key to register.
type registration struct {
	ctx        *pulumi.Context
	name       string
	title      pulumi.StringOutput
	repository string // "lab/demo"
	host       spec.DeployKeyHost
	token      pulumi.StringInput
	api        string
	key        pulumi.StringOutput
	opts       []pulumi.ResourceOption
}

// register registers the public half with the git host, read-only; nil where nobody asks for
// that. It is outside of everything that goes with the cluster: whoever destroys the stack takes the
// key away, also when the cluster is dead.
func (b *builder) register(key pulumi.StringOutput) (pulumi.Resource, error) {
	auth := b.g.Git.Auth
	if auth == nil || auth.Register == nil || b.g.Git.URL == nil {
		return nil, nil
	}
	u, err := url.Parse(*b.g.Git.URL)
	if err != nil {
		return nil, fmt.Errorf("git.url: %q is no URL", *b.g.Git.URL)
	}
	r := &registration{
		ctx: b.ctx, name: b.name + "-registration", title: keyTitle(b.clusterName, key), key: key,
		repository: spec.RepositoryPath(u.Path), host: *auth.Register, token: b.credentials.registrationToken(*auth.Register), opts: b.outside,
		api: cmp.Or(spec.Value(auth.Register.URL), defaultAPI(auth.Register.Kind, u.Hostname())),
	}
	switch r.host.Kind {
	case "github":
		return r.gitHub()
	case "gitlab":
		return r.gitLab()
	default:
		return r.gitea()
	}
}

// keyTitle returns what people see at the git host. It names the key too: some hosts want titles that differ,
// and a key that follows another is there before that goes.
func keyTitle(clusterName string, key pulumi.StringOutput) pulumi.StringOutput {
	return key.ApplyT(func(key string) (string, error) {
		public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
		if err != nil {
			return "", fmt.Errorf("reading the deploy key: %w", err)
		}
		const shown = len("SHA256:") + 8

		return "talos-proxmox " + clusterName + " " + ssh.FingerprintSHA256(public)[:shown], nil
	}).(pulumi.StringOutput)
}

// defaultAPI returns where a git host has its API; empty for GitHub's own, which the plugin knows.
func defaultAPI(kind, host string) string {
	switch {
	case kind == "github" && host == "github.com":
		return ""
	case kind == "github":
		return "https://" + host + "/"
	case kind == "gitlab":
		return "https://" + host + "/api/v4/"
	default:
		return "https://" + host + "/api/v1"
	}
}

// plugin registers an instance of a provider plugin by its name, without that provider's SDK.
type plugin struct{ pulumi.ProviderResourceState }

// provider registers an instance of a plugin, with the token.
func (r *registration) provider(name, version string, args pulumi.Map) (pulumi.ResourceOption, error) {
	args["token"] = kube.Secret(r.token)
	if r.api != "" {
		args["baseUrl"] = pulumi.String(r.api)
	}
	p := &plugin{}
	opts := append(r.opts[:len(r.opts):len(r.opts)], pulumi.Version(version), pulumi.AdditionalSecretOutputs([]string{"token"}))
	if err := r.ctx.RegisterResource("pulumi:providers:"+name, r.name+"-"+name, args, p, opts...); err != nil {
		return nil, fmt.Errorf("registering the provider %s: %w", name, err)
	}

	return pulumi.Provider(p), nil
}

// deployKeyResource registers a deploy key at any git host.
type deployKeyResource struct{ pulumi.CustomResourceState }

func (r *registration) resource(
	token, version string, args pulumi.Map, more ...pulumi.ResourceOption,
) (pulumi.Resource, error) {
	made := &deployKeyResource{}
	opts := append(append(r.opts[:len(r.opts):len(r.opts)], pulumi.Version(version)), more...)
	if err := r.ctx.RegisterResource(token, r.name, args, made, opts...); err != nil {
		return nil, fmt.Errorf("registering the deploy key: %w", err)
	}

	return made, nil
}

func (r *registration) gitHub() (pulumi.Resource, error) {
	owner, repository, _ := strings.Cut(r.repository, "/")
	provider, err := r.provider("github", GitHubProviderVersion, pulumi.Map{"owner": pulumi.String(owner)})
	if err != nil {
		return nil, err
	}

	return r.resource("github:index/repositoryDeployKey:RepositoryDeployKey", GitHubProviderVersion, pulumi.Map{
		"repository": pulumi.String(repository), "title": r.title, "key": r.key, "readOnly": pulumi.Bool(true),
	}, provider)
}

func (r *registration) gitLab() (pulumi.Resource, error) {
	provider, err := r.provider("gitlab", GitLabProviderVersion, pulumi.Map{})
	if err != nil {
		return nil, err
	}

	return r.resource("gitlab:index/deployKey:DeployKey", GitLabProviderVersion, pulumi.Map{
		"project": pulumi.String(r.repository), "title": r.title, "key": r.key, "canPush": pulumi.Bool(false),
	}, provider)
}

// What the command plugin runs. The program's own hooks would not do for the end: a plain destroy does not run the program.
const (
	tool          = "tpx"
	addCommand    = tool + " deploy-key add"
	removeCommand = tool + " deploy-key remove"
)

func (r *registration) gitea() (pulumi.Resource, error) {
	needed, err := hook.Register(r.ctx, hook.ID("controller", r.name, "tool"), func(hook.Step, *pulumi.ResourceHookArgs) error {
		return findTool(exec.LookPath)
	})
	if err != nil {
		return nil, err
	}
	before := []*pulumi.ResourceHook{needed}
	triggers := pulumi.Array{r.title, r.key, pulumi.String(r.api), pulumi.String(r.repository)}

	return r.resource("command:local:Command", CommandProviderVersion, pulumi.Map{
		// Adding what is there changes nothing: an update is another token, which is so found good or bad at once.
		"create": pulumi.String(addCommand), "update": pulumi.String(addCommand), "delete": pulumi.String(removeCommand),
		// Secret as a whole, as it is in the state: the plugin takes a secret within it for a change.
		"environment": pulumi.ToSecret(pulumi.Map{
			deploykeyenv.API: pulumi.String(r.api), deploykeyenv.Repository: pulumi.String(r.repository),
			deploykeyenv.Title: r.title, deploykeyenv.Key: r.key, deploykeyenv.LastToken: r.token,
		}),
		"logging":  pulumi.String("none"),
		"triggers": triggers,
	}, pulumi.AdditionalSecretOutputs([]string{"environment"}),
		// The same key may be meant at another address of the same host: it must not be taken away after it was found there.
		pulumi.DeleteBeforeReplace(true),
		pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: before, BeforeUpdate: before}))
}

// findTool fails with what to do where the tool that speaks with the git host is not there.
func findTool(lookPath func(string) (string, error)) error {
	if _, err := lookPath(tool); err != nil {
		return fmt.Errorf("gitops.git.auth.register: %s registers keys at Gitea and Forgejo, and is not on PATH: "+
			"go install github.com/talos-proxmox/talos-proxmox/cmd/tpx@latest", tool)
	}

	return nil
}
