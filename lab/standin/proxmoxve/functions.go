// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/cluster"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/network"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/storage"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

func functions() map[string]*bridge.Function {
	return map[string]*bridge.Function{
		"proxmoxve:Cluster/getNodes:getNodes":     {Result: cluster.GetNodesResult{}, Call: getNodes},
		"proxmoxve:Network/getVersion:getVersion": {Result: network.GetVersionResult{}, Call: getVersion},
		"proxmoxve:Storage/getDatastores:getDatastores": {
			Args: storage.GetDatastoresArgs{}, Result: storage.GetDatastoresResult{}, Call: getDatastores,
		},
	}
}

// nodeLine decodes a host in the API's list.
type nodeLine struct {
	Node, Status, Level string
	Fingerprint         string `json:"ssl_fingerprint"`
	CPU                 float64
	MaxCPU              int
	Mem, MaxMem, Uptime int
}

func getNodes(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}

	var nodes []nodeLine
	if err := a.get(ctx, "nodes", &nodes); err != nil {
		return nil, fmt.Errorf("error retrieving nodes: %w", err)
	}
	slices.SortFunc(nodes, func(x, y nodeLine) int { return strings.Compare(x.Node, y.Node) })

	columns := map[string][]any{}
	add := func(name string, v any) { columns[name] = append(columns[name], v) }
	for _, n := range nodes {
		add("names", n.Node)
		add("onlines", n.Status == "online")
		add("supportLevels", n.Level)
		add("sslFingerprints", n.Fingerprint)
		add("cpuUtilizations", n.CPU)
		add("cpuCounts", n.MaxCPU)
		add("memoryUseds", n.Mem)
		add("memoryAvailables", n.MaxMem)
		add("uptimes", n.Uptime)
	}

	return table("nodes", columns), nil
}

// table returns a result whose columns are lists of the same length.
func table(id string, columns map[string][]any) bridge.Tree {
	out := bridge.Tree{"id": id}
	for name, values := range columns {
		out[name] = numbers(values)
	}

	return out
}

func numbers(values []any) []any {
	out := make([]any, len(values))
	for i, v := range values {
		if n, ok := v.(int); ok {
			v = float64(n)
		}
		out[i] = v
	}

	return out
}

func getVersion(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}

	v := struct{ Release, RepoID, Version string }{}
	if err := a.get(ctx, "version", &v); err != nil {
		return nil, fmt.Errorf("Unable to Read Version: %w", err) // the provider's text
	}

	return bridge.Tree{"id": "version", "release": v.Release, "repositoryId": v.RepoID, "version": v.Version}, nil
}

func getDatastores(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}

	node := op.In.Str("nodeName")

	var stores []map[string]any
	if err := a.get(ctx, "nodes/"+node+"/storage", &stores); err != nil {
		return nil, fmt.Errorf("error retrieving datastores of %s: %w", node, err)
	}

	slices.SortFunc(stores, func(x, y map[string]any) int {
		return strings.Compare(fmt.Sprint(x["storage"]), fmt.Sprint(y["storage"]))
	})

	columns := map[string][]any{}
	add := func(name string, v any) { columns[name] = append(columns[name], v) }
	for _, s := range stores {
		content, _ := s["content"].(string)
		kinds := strings.Split(content, ",")
		slices.Sort(kinds)

		add("contentTypes", list(kinds))
		add("datastoreIds", s["storage"])
		add("types", s["type"])
		add("actives", number(s["active"]) == 1)
		add("enableds", number(s["enabled"]) == 1)
		add("shareds", number(s["shared"]) == 1)
		add("spaceAvailables", number(s["avail"]))
		add("spaceTotals", number(s["total"]))
		add("spaceUseds", number(s["used"]))
	}

	return merge(table(node+"_datastores", columns), bridge.Tree{"nodeName": node}), nil
}
