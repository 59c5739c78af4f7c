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

// deprecatedMetric counts, since the API server started, who asked for what is deprecated, and names the
// release that removes it (Kubernetes, "Deprecated API Migration Guide").
const deprecatedMetric = "apiserver_requested_deprecated_apis"

var metricLabel = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// warnOfRemoved reports every API that somebody asked for and that the wanted version has no more. Nothing
// is refused: who asked may have done so for the last time.
func (u KubernetesUpgrade) warnOfRemoved(ctx context.Context, wanted versions.Kubernetes) {
	if u.Metrics == nil {
		return
	}
	calling, cancel := context.WithTimeout(ctx, u.Poll.Call)
	defer cancel()
	text, err := u.Metrics(calling)
	if err != nil {
		u.Report(fmt.Sprintf("nobody says whether removed APIs are in use: %v", err))

		return
	}
	for _, used := range removedAPIs(text, wanted) {
		u.Report("warning: " + used)
	}
}

// removedAPIs are sentences about APIs that were asked for and that the version has no more.
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
		found = append(found, fmt.Sprintf("%s of %s was asked for, which Kubernetes %s has no more: "+
			"move who uses it to a newer version", resource, strings.TrimPrefix(said["group"]+"/"+said["version"], "/"),
			said["removed_release"]))
	}
	slices.Sort(found)

	return slices.Compact(found)
}
