// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// faults runs `lab fault`.
func faults(o options, args []string) error {
	if len(args) == 0 {
		return errors.New("fault: say add, list, remove, clear or kinds")
	}
	switch command, rest := args[0], args[1:]; command {
	case "add":
		return addFault(o, rest)
	case "list":
		o.json = o.json || slices.Contains(rest, "--json")

		return listFaults(o)
	case "remove":
		return removeFaults(o, rest)
	case "clear":
		n, err := o.siteDir().ClearFaults()
		if err != nil {
			return err // says what it is about
		}
		fmt.Println(n, "faults ended")

		return nil
	case "kinds":
		return printKinds()
	default:
		return fmt.Errorf("fault: there is no %q; there are add, list, remove, clear and kinds", command)
	}
}

// addFault starts the lab where none runs, so that a first command can meet a fault.
func addFault(o options, args []string) error {
	if len(args) == 0 {
		return errors.New("fault add: name a kind; `lab fault kinds` lists them")
	}
	with := map[string]string{}
	for _, arg := range args[1:] {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("fault add: %q: must be KEY=VALUE", arg)
		}
		if _, twice := with[key]; twice {
			return fmt.Errorf("fault add: %q is said twice", key)
		}
		with[key] = value
	}
	if _, err := running(o); err != nil {
		return err
	}

	f, err := o.siteDir().AddFault(fault.Kind(args[0]), with)
	if err != nil {
		return err // says what is wrong
	}
	if o.json {
		return printJSON(f)
	}
	fmt.Printf("fault %d: %s\n", f.ID, f)

	return nil
}

func removeFaults(o options, args []string) error {
	if len(args) == 0 {
		return errors.New("fault remove: say which, by its id; `lab fault list` shows them")
	}
	var ids []int
	for _, arg := range args {
		id, err := strconv.Atoi(arg)
		if err != nil {
			return fmt.Errorf("fault remove: %q is no id of a fault; `lab fault list` shows them", arg)
		}
		ids = append(ids, id)
	}
	n, err := o.siteDir().RemoveFaults(ids...)
	if err != nil {
		return err // says what is wrong
	}
	fmt.Println(n, "faults ended")

	return nil
}

func listFaults(o options) error {
	list, err := o.siteDir().Faults()
	if err != nil {
		return err // says what it is about
	}
	if o.json {
		return printJSON(list)
	}

	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "ID\tSTRUCK\tFAULT") // the terminal is gone when this fails
	for _, f := range list {
		_, _ = fmt.Fprintf(t, "%d\t%d\t%s\n", f.ID, f.Struck, f)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the faults: %w", err)
	}

	return nil
}

func printKinds() error {
	for _, d := range fault.Kinds() {
		fmt.Printf("%s: %s\n", d.Kind, d.Means)
		for _, k := range d.Keys {
			needs := ""
			switch {
			case k.Required:
				needs = " (required)"
			case k.Default != "":
				needs = fmt.Sprintf(" (default %s)", k.Default)
			}
			fmt.Printf("  %s=  %s%s\n", k.Name, k.Means, needs)
		}
	}

	return nil
}
