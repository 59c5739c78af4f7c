// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package rollout

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/internal/versions"
)

// deprecatedMetric counts, since the API server started, requests for deprecated APIs, and names the release
// that removes each (Kubernetes, "Deprecated API Migration Guide").
const deprecatedMetric = "apiserver_requested_deprecated_apis"

var metricLabel = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// warnOfRemoved reports every API that was requested and that the wanted version no longer serves. Nothing is
// refused: the last such request may have been made already.
func (u KubernetesUpgrade) warnOfRemoved(ctx context.Context, wanted versions.Kubernetes) {
	if u.Metrics == nil {
		return
	}
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	text, err := u.Metrics(calling)
	if err != nil {
		u.Report(fmt.Sprintf("cannot tell whether removed APIs are in use: %v", err))

		return
	}
	for _, used := range removedAPIs(text, wanted) {
		u.Report("warning: " + used)
	}
}

// removedAPIs returns sentences about APIs that were requested and that the version no longer serves.
func removedAPIs(metrics []byte, wanted versions.Kubernetes) []string {
	var found []string
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), deprecatedMetric+"{")
		if !ok {
			continue
		}
		end := strings.LastIndex(labels, "}")
		if end < 0 || strings.TrimSpace(labels[end+1:]) == "0" {
			continue
		}
		said := map[string]string{}
		for _, l := range metricLabel.FindAllStringSubmatch(labels[:end], -1) {
			said[l[1]] = l[2]
		}
		removed, err := versions.ParseKubernetes("v" + said["removed_release"] + ".0")
		if said["removed_release"] == "" || err != nil || wanted.Compare(removed) < 0 {
			continue
		}
		resource := said["resource"]
		if said["subresource"] != "" {
			resource += "/" + said["subresource"]
		}
		found = append(found, fmt.Sprintf("%s of %s was requested, which Kubernetes %s no longer serves: "+
			"move its users to a newer version", resource, strings.TrimPrefix(said["group"]+"/"+said["version"], "/"),
			said["removed_release"]))
	}
	slices.Sort(found)

	return slices.Compact(found)
}
