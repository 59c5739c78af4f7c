// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// flags holds the options of mount that are flags of the kernel's; the others are the file system's own.
var flags = map[string]uintptr{
	"defaults": 0, "rw": 0, "bind": unix.MS_BIND, "rbind": unix.MS_BIND | unix.MS_REC, "remount": unix.MS_REMOUNT, "ro": unix.MS_RDONLY,
	"noexec": unix.MS_NOEXEC, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noatime": unix.MS_NOATIME, "relatime": unix.MS_RELATIME,
}

// mounts does what a kubelet asks mount and umount for.
func mounts(args []string) error {
	kind, options, places := "", []string(nil), []string(nil)
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case (a == "-t" || a == "-o") && i+1 < len(args):
			if i++; a == "-t" {
				kind = args[i]
			} else {
				options = strings.Split(args[i], ",")
			}
		case a == "--bind":
			options = append(options, "bind")
		case strings.HasPrefix(a, "-"): // how to do it, and not what
		default:
			places = append(places, a)
		}
	}
	switch {
	case filepath.Base(args[0]) == "umount" && len(places) == 1:
		return unix.Unmount(places[0], 0)
	case filepath.Base(args[0]) == "mount" && len(places) == 2:
		return mount(places[0], places[1], kind, options)
	default:
		return errors.New("neither mount SOURCE TARGET nor umount TARGET")
	}
}

func mount(source, target, kind string, options []string) error {
	var set uintptr
	var data []string
	for _, o := range options {
		if f, ok := flags[o]; ok {
			set |= f
		} else {
			data = append(data, o)
		}
	}
	if err := unix.Mount(source, target, kind, set, strings.Join(data, ",")); err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}

	return nil
}
