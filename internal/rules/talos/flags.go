// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/spec"
)

// flagList has the flags of every program, with the kind of value each takes: those that any of the releases has which a stack may
// name (hack/kubeflags).
//
//go:embed flags.txt
var flagList string

// knownFlags returns the kinds of value by program and flag.
var knownFlags = sync.OnceValue(func() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for line := range strings.Lines(flagList) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		if all[words[0]] == nil {
			all[words[0]] = map[string][]string{}
		}
		all[words[0]][words[1]] = append(all[words[0]][words[1]], words[2])
	}

	return all
})

// goneFromEtcd are flags of releases of etcd before those in the list.
var goneFromEtcd = regexp.MustCompile(`^(experimental|proxy|discovery|enable)-`)

// unknownFlag returns what is wrong with a flag that the program does not have; "" when it has it.
func unknownFlag(program, flag string) string {
	flags := knownFlags()[program]
	if _, ok := flags[flag]; ok || program == "etcd" && goneFromEtcd.MatchString(flag) {
		return ""
	}
	names := make([]string, 0, len(flags))
	for name := range flags {
		names = append(names, name)
	}
	slices.Sort(names)
	if best := check.Nearest(flag, names); best != "" {
		return fmt.Sprintf("is not a flag that the program has, which would not start; did you mean %q?", best)
	}

	return "is not a flag that the program has, which would not start: remove it"
}

// flagValue returns what is wrong with the value of a flag; "" when nothing is.
func flagValue(program, flag, value string) string {
	kinds := knownFlags()[program][flag]
	if len(kinds) != 1 {
		return "" // unknown, or of different kinds in different releases
	}
	switch kinds[0] {
	case "bool":
		if _, err := strconv.ParseBool(value); err != nil {
			return fmt.Sprintf("is %q, and the flag takes true or false", value)
		}
	case "number":
		if _, err := strconv.ParseInt(value, 0, 64); err != nil {
			return fmt.Sprintf("is %q, and the flag takes a whole number", value)
		}
	case "fraction":
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return fmt.Sprintf("is %q, and the flag takes a number", value)
		}
	case "duration":
		if _, err := time.ParseDuration(value); err != nil {
			return fmt.Sprintf(`is %q, and the flag takes a duration such as "30s" or "1h"`, value)
		}
	case "address":
		if _, err := spec.ParseAddr(value); err != nil {
			return fmt.Sprintf("is %q, and the flag takes an IP address", value)
		}
	}

	return ""
}

// FlagProblem returns what is wrong with a flag of a program ("apiServer", "kubelet"), apart from what other settings say; "" when
// nothing is.
func FlagProblem(program, flag, value string) string {
	for _, c := range components() {
		if c.path == "kubernetes."+program+".extraArgs" && slices.Contains(c.denied, flag) {
			return "is a flag that Talos sets itself, and it starts nothing beside it: remove it"
		}
	}
	if message := unknownFlag(program, flag); message != "" {
		return message
	}
	if message := flagValue(program, flag, value); message != "" {
		return message
	}

	return flagChoice(flag, value)
}
