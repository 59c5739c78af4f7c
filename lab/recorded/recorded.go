// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package recorded holds what the genuine parts answered, as data, and compares other answers with it. So the lab is
// held against them on machines that have none of them.
//
// A folder is a part and its version. Each file is a state in which it was asked: "## call", then the answer, "OK" with
// its content as JSON or "ERR" with code and message, indented. accepted.yaml says, by file and call, which answers may
// be others, and why.
package recorded

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed talos-v1.12.6
var data embed.FS

// TalosVersion is the version of Talos whose answers are kept.
const TalosVersion = "v1.12.6"

// Answer holds what was answered to a call.
type Answer struct {
	Call string
	// Lines are the answer; one that ends in an ellipsis was cut off there, and a line that is one alone stands for more.
	Lines []string
}

// Talos returns the answers of Talos in a state, in the order in which it was asked.
func Talos(state string) ([]Answer, error) {
	content, err := data.ReadFile(path.Join("talos-"+TalosVersion, state+".txt"))
	if err != nil {
		return nil, fmt.Errorf("reading the answers of Talos: %w", err)
	}

	return parse(string(content)), nil
}

func parse(content string) []Answer {
	var all []Answer
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\n")
		if call, ok := strings.CutPrefix(line, "## "); ok {
			all = append(all, Answer{Call: call})
		} else if len(all) > 0 && strings.TrimSpace(line) != "" {
			last := &all[len(all)-1]
			last.Lines = append(last.Lines, strings.TrimSpace(line))
		}
	}

	return all
}

// InContainer reports whether what is kept of a state came from Talos in container mode; the rest came from a VM.
func InContainer(state string) bool { return state != "maintenance" && state != "refusals" }

// Accepted returns, by call, why an answer in a state may be another. A call may end in "*".
func Accepted(state string) (map[string]string, error) {
	all, err := reasons()

	return all[state], err
}

// AcceptedInContainer returns the same for Talos in container mode, which lacks what only a machine has.
func AcceptedInContainer(state string) (map[string]string, error) {
	all, err := reasons()
	if err != nil || InContainer(state) {
		return all[state], err
	}
	accepted := maps.Clone(all[state])
	maps.Copy(accepted, all[state+" in a container"])

	return accepted, nil
}

func reasons() (map[string]map[string]string, error) {
	content, err := data.ReadFile(path.Join("talos-"+TalosVersion, "accepted.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the accepted differences: %w", err)
	}
	var all map[string]map[string]string
	if err := yaml.Unmarshal(content, &all); err != nil {
		return nil, fmt.Errorf("reading the accepted differences: %w", err)
	}

	return all, nil
}

// Reason returns why the answer to a call may be another, "" when it may not.
func Reason(accepted map[string]string, call string) string {
	if why, ok := accepted[call]; ok {
		return why
	}
	for pattern, why := range accepted {
		if start, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(call, start) {
			return why
		}
	}

	return ""
}

// varying is what differs from run to run, and what stands for it.
var varying = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "<time>"},
	{regexp.MustCompile(`\b10\.\d+\.0\.77\b`), "<nobody>"},
	{regexp.MustCompile(`\b10\.\d+\.0\.\d+/\d+`), "<address>/24"},
	{regexp.MustCompile(`\b10\.\d+\.0\.\d+\b`), "<address>"},
	{regexp.MustCompile(`fe80::[0-9a-f:]+`), "<link-local>"},
	{regexp.MustCompile(`\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`), "<mac>"},
	{regexp.MustCompile(`\b\d{15,20}\b`), "<id>"},
	{regexp.MustCompile(`"id":"[0-9a-v]{20}"|"id":"[0-9a-f]{20,}"`), `"id":"<id>"`},
	{regexp.MustCompile(`"memberID":"[0-9a-f]+"`), `"memberID":"<id>"`},
	{regexp.MustCompile(`"nodeId":"[^"]+"`), `"nodeId":"<id>"`},
	{regexp.MustCompile(`"clusterId":"[^"]+"`), `"clusterId":"<id>"`},
	{regexp.MustCompile(`"goVersion":"[^"]+"|"sha":"[^"]+"`), `"build":"<build>"`},
	{regexp.MustCompile(`"(hostname|nodename)":"[^"]+"`), `"$1":"<name>"`},
	{regexp.MustCompile(`"platform":\{"mode":"[a-z]+","name":"[a-z]+"\}`), `"platform":"<platform>"`},
	{regexp.MustCompile(`"(dbSize|dbSizeInUse|raftAppliedIndex|raftIndex|raftTerm)":"\d+"`), `"$1":"<number>"`},
	{regexp.MustCompile(`("digest":"[^"]*","name":"[^"]*",)"size":"\d+"`), `$1"size":"<size>"`},
	{regexp.MustCompile(`"modified":"\d+"`), `"modified":"<time>"`},
	{regexp.MustCompile(`("relativeName":"[^"]*",)"size":"\d+"`), `$1"size":"<size>"`},
	{regexp.MustCompile(`token: <redacted>`), "token: <base64>"},
	{regexp.MustCompile(`"token-id":"[a-z0-9]{6}"`), `"token-id":"<id>"`},
	{regexp.MustCompile(`bootstrap-token-[a-z0-9]{6}`), "bootstrap-token-<id>"},
	{regexp.MustCompile(`"staticPodURL":"http://127.0.0.1:\d+"`), `"staticPodURL":"<url>"`},
	{regexp.MustCompile(`PID \d+`), "PID <id>"},
	{regexp.MustCompile(`"bytes":"[^"]*"?.*`), `"bytes":"<bytes>`},
	{regexp.MustCompile(`"(ca|crt)":"(LS0t[^"]*|<base64>)"?`), `"$1":"<base64>`},
	{regexp.MustCompile(`"name":"",("version":)`), "$1"}, // a newer client prints a name that none has
	{keyMaterial, "<base64>"},
	{regexp.MustCompile(`stream terminated by RST_STREAM with error code: CANCEL`), "context deadline exceeded"},
	{regexp.MustCompile(`DeadlineExceeded: .*`), "DeadlineExceeded"},
}

// Normalize replaces what differs from run to run.
func Normalize(line string) string {
	line = strings.TrimSpace(line)
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.text)
	}

	return line
}

// Equal reports whether an answer is the recorded one, but for what differs from run to run.
func (a Answer) Equal(got []string) bool {
	got = slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.TrimSpace(s) == "" })
	for i, want := range a.Lines {
		if want == "…" {
			return len(got) >= i
		}
		if i >= len(got) {
			return false
		}
		start, cut := strings.CutSuffix(want, "…")
		if cut {
			start = strings.TrimRight(start, ".0123456789") // what varies may be cut off in the middle
		}
		want, have := Normalize(start), Normalize(got[i])
		if want != have && !(cut && strings.HasPrefix(have, want)) {
			return false
		}
	}

	return len(got) == len(a.Lines)
}
