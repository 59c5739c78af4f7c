// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"context"
	"os"
	"strconv"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func configType() (*bridge.Type, error) { return bridge.InputsOf(kubernetes.ProviderArgs{}) }

// CheckConfig checks the provider's configuration.
func (p *provider) CheckConfig(
	_ context.Context, req plugin.CheckConfigRequest,
) (plugin.CheckConfigResponse, error) {
	t, err := configType()
	if err != nil {
		return plugin.CheckConfigResponse{}, err
	}

	news := bridge.DecodeConfig(t, req.News)
	problems := bridge.NewProblems(req.Name)
	checked := news.Copy()
	delete(checked, "version")
	delete(checked, "pluginDownloadURL")
	problems.Typecheck(t, resource.NewProperty(checked), nil)

	if dir := bridge.TreeOf(news).Str("renderYamlToDirectory"); dir != "" {
		problems.Add(bridge.Path{"renderYamlToDirectory"},
			"the lab's stand-in for the provider kubernetes does not render to a directory")
	}

	return plugin.CheckConfigResponse{Properties: bridge.EncodeConfig(news), Failures: problems.Failures()}, nil
}

// DiffConfig: a change of cluster replaces the provider and with it everything that it manages. Which
// cluster it is, clusterIdentifier says; without one, the kubeconfig's current cluster.
func (p *provider) DiffConfig(_ context.Context, req plugin.DiffConfigRequest) (plugin.DiffConfigResponse, error) {
	found := bridge.Compare(resource.NewProperty(req.OldInputs), resource.NewProperty(req.NewInputs), nil)
	was, now := bridge.TreeOf(req.OldInputs), bridge.TreeOf(req.NewInputs)

	id, idUnknown := now.Str("clusterIdentifier"), req.NewInputs["clusterIdentifier"].ContainsUnknowns()
	identified := was.Str("clusterIdentifier") != "" && (id != "" || idUnknown)

	return bridge.Result(found, func(c bridge.Change) bool {
		switch c.Path.Pattern() {
		case "clusterIdentifier":
			return was.Str("clusterIdentifier") != "" || idUnknown
		case "kubeconfig", "context", "cluster":
			if identified {
				return false
			}
			return c.Unknown || !sameCluster(was, now)
		}
		return false
	}), nil
}

// sameCluster compares what the current contexts lead to.
func sameCluster(was, now bridge.Tree) bool {
	a, errA := currentCluster(was)
	b, errB := currentCluster(now)
	if errA != nil || errB != nil || a == nil || b == nil {
		return false
	}

	return a.Server == b.Server && string(a.CertificateAuthorityData) == string(b.CertificateAuthorityData) &&
		a.CertificateAuthority == b.CertificateAuthority && a.InsecureSkipTLSVerify == b.InsecureSkipTLSVerify
}

func currentCluster(config bridge.Tree) (*clientcmdapi.Cluster, error) {
	k, err := loadKubeconfig(config.Str("kubeconfig"))
	if err != nil {
		return nil, err
	}

	name := config.Str("context")
	if name == "" {
		name = k.CurrentContext
	}
	if c := config.Str("cluster"); c != "" {
		return k.Clusters[c], nil
	}
	if k.Contexts[name] == nil {
		return nil, nil // it names none
	}

	return k.Clusters[k.Contexts[name].Cluster], nil
}

// loadKubeconfig reads a kubeconfig, which is given as text or as the name of a file.
func loadKubeconfig(textOrFile string) (*clientcmdapi.Config, error) {
	if textOrFile == "" {
		return clientcmd.NewDefaultClientConfigLoadingRules().Load()
	}
	if _, err := os.Stat(textOrFile); err == nil {
		return clientcmd.LoadFromFile(textOrFile)
	}

	return clientcmd.Load([]byte(textOrFile))
}

// flag reads a boolean setting, or the environment's.
func flag(config bridge.Tree, name, env string, fallback bool) bool {
	if config.Has(name) {
		return config.Bool(name)
	}
	if v, err := strconv.ParseBool(os.Getenv(env)); err == nil {
		return v
	}

	return fallback
}
