// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

func printStatus(o options) error {
	s, err := o.siteDir().Status()
	if err != nil {
		return err // says what to do
	}
	if o.json {
		return printJSON(s)
	}

	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	row := func(cells ...any) {
		_, _ = fmt.Fprint(t, fmt.Sprintln(tabbed(cells)...)) // the terminal is gone when this fails
	}
	row("HOST", "CLUSTER", "CORES", "MEMORY", "VMS", "IMAGES")
	for _, h := range s.Hosts {
		row(h.Name, h.Cluster, h.Cores, fmt.Sprintf("%d GiB", h.MemoryMiB>>10), h.VMs, len(h.Files))
	}
	row("")
	row("VM", "NAME", "HOST", "STATUS", "INSIDE")
	for _, v := range s.VMs {
		row(v.VMID, v.Name, v.Host, v.Status, v.State)
	}
	row("")
	row("NODE", "ADDRESS", "STAGE", "TALOS", "ROLE", "CLUSTER", "PROBLEM")
	for _, n := range s.Nodes {
		row(n.Hostname, n.Address, n.Stage, n.Talos, n.Role, n.Cluster, n.Problem)
	}
	row("")
	row("CLUSTER", "KUBERNETES", "ENDPOINT", "HEALTHY", "MEMBERS")
	for _, c := range s.Clusters {
		row(c.Name, c.Kubernetes, c.Endpoint, c.Healthy, strings.Join(c.Members, ","))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}

	return nil
}

// tabbed puts a tab after each cell but the last.
func tabbed(cells []any) []any {
	var parts []string
	for _, c := range cells {
		parts = append(parts, fmt.Sprint(c))
	}

	return []any{strings.Join(parts, "\t")}
}

func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("printing: %w", err)
	}

	return nil
}

// printTrace prints the site's operations; it needs no running lab.
func printTrace(o options) error {
	path := o.siteDir().Trace()
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("there is no trace on %s yet: %w", o.site, err)
	}

	if o.json {
		f, err := os.Open(path) // G304: the site's own file
		if err != nil {
			return fmt.Errorf("printing the trace: %w", err)
		}
		defer func() { _ = f.Close() }() // only read
		if _, err := io.Copy(os.Stdout, f); err != nil {
			return fmt.Errorf("printing the trace: %w", err)
		}

		return nil
	}

	events, err := guest.ReadTrace(path)
	if err != nil {
		return err // says what it is about
	}
	for _, e := range events {
		fmt.Printf("%s  %8s  %-18s %-24s %s\n", e.Start.Format("15:04:05.000"), e.End.Sub(e.Start).Round(time.Millisecond), e.Op,
			e.Object, e.Error)
	}

	return nil
}
