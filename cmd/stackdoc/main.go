// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Command stackdoc writes the stack file's reference page, the page of versions and the JSON Schema from the Go
// types. With -check it only says which of them are stale.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/stack/docgen"
)

func main() {
	check := flag.Bool("check", false, "fail when a generated file is stale, and write nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(check bool) error {
	if !check {
		return docgen.Write(".")
	}
	stale, err := docgen.Stale(".")
	if err == nil && len(stale) > 0 {
		err = fmt.Errorf("stale: %s; run `go run ./cmd/stackdoc`", strings.Join(stale, ", "))
	}

	return err
}
