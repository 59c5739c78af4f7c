// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talos-proxmox/talos-proxmox/lab/recorded/kubelets"
)

// kubernetes returns an administrator of Kubernetes at a control plane.
func (g *genuineTalos) kubernetes(c *cluster, v *vm) kubernetes.Interface {
	g.t.Helper()
	content, err := c.client(v).Kubeconfig(g.ctx)
	require.NoError(g.t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	require.NoError(g.t, err)
	config.Dial = func(ctx context.Context, _, address string) (net.Conn, error) { return g.connect(ctx, address) }
	api, err := kubernetes.NewForConfig(config)
	require.NoError(g.t, err)

	return api
}

// watchKubelets plays all scenes with genuine kubelets, and compares what they do with what they did when it was recorded.
func (g *genuineTalos) watchKubelets(c *cluster, control, worker *vm) {
	g.t.Helper()
	site := kubelets.Site{
		Client: g.kubernetes(c, control), Control: "n1", Worker: "w1", Patience: genuinePatience,
		Restart: func(ctx context.Context) error {
			_, err := c.client(worker).ServiceRestart(ctx, "kubelet")

			return err
		},
	}
	now := kubelets.Recording{From: fmt.Sprintf("kubelet %s under the name of v1.35.0, containerd v2.1.6, %s", kubelets.Version, provenance(g.t))}
	now.Scenes = map[string]any{}
	kept, _, err := kubelets.Recorded()
	require.NoError(g.t, err)
	for _, scene := range site.Scenes() {
		began := time.Now()
		watched, err := scene.Watch(g.ctx)
		if !assert.NoError(g.t, err, scene.Name) {
			continue
		}
		fmt.Printf("watched genuine kubelets: %s, %s\n", scene.Name, time.Since(began).Round(time.Second))
		now.Scenes[scene.Name], err = kubelets.Normalize(watched)
		require.NoError(g.t, err)
		differences, _ := kubelets.Compare(kept.Scenes[scene.Name], now.Scenes[scene.Name])
		for i, d := range differences {
			if *record || i == 20 {
				break
			}
			fmt.Printf("%s, %s: kubelets did otherwise when it was recorded\n  then: %s\n  now:  %s\n", scene.Name, d.Path, d.Want, d.Got)
		}
	}
	if *record {
		content, err := json.MarshalIndent(now, "", " ")
		require.NoError(g.t, err)
		path := filepath.Join("..", "recorded", "kubelets", "kubelet-"+kubelets.Version+".json")
		require.NoError(g.t, os.WriteFile(path, append(content, '\n'), 0o600))
	}
}
