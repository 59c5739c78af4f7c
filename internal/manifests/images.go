// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// argument finds an image in a flag or an environment variable: controllers are told in them what
// to run. It must name a registry and a tag or a digest, so that URLs and paths are left alone.
var argument = regexp.MustCompile(
	`^(?:--?[A-Za-z0-9-]+=)?` + // a flag
		`((?:[a-z0-9-]+\.)+[a-z]{2,}(?::[0-9]+)?(?:/[a-z0-9._-]+)+` + // registry and name
		`(?::[A-Za-z0-9_][A-Za-z0-9._-]*|@sha256:[0-9a-f]{64}){1,2})$`) // tag, digest

// Images returns the container images that the objects in a manifest run or tell others to run, sorted.
func Images(manifest string) ([]string, error) {
	all, err := objects(manifest)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, o := range all {
		collect(o, found)
	}

	return slices.Sorted(maps.Keys(found)), nil
}

// collect walks through an object.
func collect(value any, found map[string]bool) {
	switch v := value.(type) {
	case object:
		for key, below := range v {
			switch key {
			case "containers", "initContainers", "ephemeralContainers":
				containers, _ := below.(list)
				for _, c := range containers {
					container(c, found)
				}
			default:
				collect(below, found)
			}
		}
	case list:
		for _, below := range v {
			collect(below, found)
		}
	}
}

// container adds the container's image, and those in its flags and environment.
func container(value any, found map[string]bool) {
	c, ok := value.(object)
	if !ok {
		return
	}
	if image := stringAt(c, "image"); image != "" {
		found[image] = true
	}
	texts := []string{}
	for _, key := range []string{"command", "args"} {
		words, _ := c[key].(list)
		for _, w := range words {
			if s, ok := w.(string); ok {
				texts = append(texts, s)
			}
		}
	}
	variables, _ := c["env"].(list)
	for _, v := range variables {
		if o, ok := v.(object); ok {
			texts = append(texts, stringAt(o, "value"))
		}
	}
	for _, t := range texts {
		if m := argument.FindStringSubmatch(strings.TrimSpace(t)); m != nil {
			found[m[1]] = true
		}
	}
}

// RenderChart renders a chart as [DayZero] does the user's.
func RenderChart(ctx context.Context, charts Cache, cfg spec.Config, name string, c spec.DayZeroChart) (string, error) {
	return Input{Config: cfg, Charts: charts}.chart(ctx, name, c)
}
