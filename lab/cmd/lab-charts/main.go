// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command lab-charts packs the Helm repositories that the lab serves from Go modules in the module
// cache; `make tools` runs it.
//
//	lab-charts DIRECTORY MODULE@VERSION…
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/charts"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab-charts:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: lab-charts DIRECTORY MODULE@VERSION…")
	}

	sources := charts.Sources{Gateway: map[string]string{}}
	for _, module := range args[1:] {
		dir, err := download(module)
		if err != nil {
			return err
		}
		_, version, _ := strings.Cut(module, "@")
		switch {
		case strings.Contains(module, "cilium/cilium@"):
			sources.Cilium = append(sources.Cilium, dir)
		case strings.Contains(module, "gateway-api@"):
			sources.Gateway[version] = dir
		default:
			sources.Flux = append(sources.Flux, dir)
		}
	}

	return charts.Pack(args[0], sources)
}

// download brings a module into the module cache and says where it is.
func download(module string) (string, error) {
	fmt.Println("charts: fetching", module)

	var stderr bytes.Buffer
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Stderr = &stderr
	out, err := cmd.Output()

	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil || answer.Error != "" || err != nil {
		return "", fmt.Errorf("fetching module %s: %s%s", module, answer.Error, stderr.String())
	}

	return answer.Dir, nil
}
