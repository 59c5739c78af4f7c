// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package recorded

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What Proxmox VE's own code answered: its API description without the prose, and scenes, each a new cluster and
// requests one after the other. The code ran without hosts: its LVM, QEMU and network were played, tasks ran in the
// process that answered.
//
//go:embed proxmox-ve-8.4 proxmox-ve-9.2
var proxmoxData embed.FS

// ProxmoxScene holds requests to a new cluster, and what Proxmox VE answered.
type ProxmoxScene struct {
	Name     string           `json:"name"`
	Requests []ProxmoxRequest `json:"requests"`
	Answers  []ProxmoxAnswer  `json:"answers"`
	// Grants are the privileges of u@pve by path.
	Grants [][2]any `json:"grants"`
	// Fail names what goes wrong on the host in this scene.
	Fail []string `json:"fail"`
}

// ProxmoxRequest holds a call, or that a VM was started behind the API's back, which has no answer.
type ProxmoxRequest struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Params  map[string]string `json:"params"`
	User    string            `json:"user"`
	Running []int             `json:"running"`
}

// ProxmoxAnswer holds what became of a call.
type ProxmoxAnswer struct {
	Status  int               `json:"status"`
	Message string            `json:"message"`
	Errors  map[string]string `json:"errors"`
	Data    any               `json:"data"`
	Tasks   []ProxmoxTask     `json:"tasks"`
	// Configs are the configuration files that changed, by "node/vmid"; nil is one that went away.
	Configs map[string][]string `json:"configs"`
}

// ProxmoxTask holds a task that a call ran.
type ProxmoxTask struct {
	Type string   `json:"type"`
	ID   string   `json:"id"`
	Exit string   `json:"exit"`
	Log  []string `json:"log"`
}

// ProxmoxMajors returns the major versions whose answers are kept.
func ProxmoxMajors() []int { return []int{8, 9} }

func proxmoxFolder(major int) string {
	if major > 8 { // the version before
		return "proxmox-ve-9.2"
	}

	return "proxmox-ve-8.4"
}

// ProxmoxAPI returns the API description of a major version as JSON.
func ProxmoxAPI(major int) ([]byte, error) {
	return unzip(path.Join(proxmoxFolder(major), "api.json.gz"))
}

// Proxmox returns the scenes of a major version, and the versions of the packages that answered.
func Proxmox(major int) (scenes []ProxmoxScene, version string, err error) {
	data, err := unzip(path.Join(proxmoxFolder(major), "answers.json.gz"))
	if err != nil {
		return nil, "", err
	}
	var file struct {
		Version string         `json:"version"`
		Scenes  []ProxmoxScene `json:"scenes"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, "", fmt.Errorf("reading the answers of Proxmox VE %d: %w", major, err)
	}

	return file.Scenes, file.Version, nil
}

func unzip(name string) ([]byte, error) {
	data, err := proxmoxData.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	plain, err := io.ReadAll(zipped)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}

	return plain, nil
}

// ProxmoxAccepted returns, by reason, which answers of a major version may be others: patterns of "scene / number", where
// "*" stands for anything.
func ProxmoxAccepted(major int) (map[string][]string, error) {
	data, err := proxmoxData.ReadFile(path.Join(proxmoxFolder(major), "accepted.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the accepted differences: %w", err)
	}
	var all map[string][]string
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the accepted differences: %w", err)
	}

	return all, nil
}

// ProxmoxReason returns why the answer may be another, "" when it may not.
func ProxmoxReason(accepted map[string][]string, answer string) string {
	for why, patterns := range accepted {
		for _, p := range patterns {
			if globMatch(p, answer) {
				return why
			}
		}
	}

	return ""
}

func globMatch(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}

	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(s)
}
