// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package api

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talos-proxmox/talos-proxmox/lab/talos/node"
)

// folders lists the folders of Talos's root file system that the lab shows.
func folders() []string {
	return []string{
		"/", "/.extra", "/boot", "/boot/EFI", "/dev", "/etc", "/etc/cni", "/etc/cri", "/etc/kubernetes", "/etc/ssl", "/mnt", "/opt",
		"/proc", "/run", "/sys", "/system", "/system/state", "/tmp", "/usr", "/usr/bin", "/usr/etc", "/usr/lib", "/usr/local", "/var",
		"/var/lib", "/var/log", "/var/mnt",
	}
}

// files returns the few files that tell about the node.
func files(n *node.Node) map[string]string {
	hosts := "127.0.0.1 localhost\n"
	for _, p := range n.Book.Addresses() {
		hosts += fmt.Sprintf("%-9s %s\n", p.Addr(), n.Hostname())
	}

	return map[string]string{
		bootIDFile: n.BootID + "\n",
		"/etc/os-release": fmt.Sprintf("NAME=\"Talos\"\nID=talos\nVERSION_ID=%s\nPRETTY_NAME=\"Talos (%s)\"\n",
			n.Image.Talos, n.Image.Talos),
		"/etc/hostname": n.Hostname() + "\n",
		"/etc/hosts":    hosts + "::1       localhost ip6-localhost ip6-loopback\nff02::1   ip6-allnodes\nff02::2   ip6-allrouters\n",
	}
}

// file describes a file or a folder of the node.
type file struct {
	path   string
	folder bool
	size   int64
}

// walk returns what is at a path and below it, down to a depth; below 0 there is no end.
func walk(n *node.Node, root string, depth int) ([]file, error) {
	all := map[string]file{}
	for _, p := range folders() {
		all[p] = file{path: p, folder: true, size: 60}
	}
	for p, content := range files(n) {
		all[p] = file{path: p, size: int64(len(content))}
	}
	if _, ok := all[root]; !ok {
		return nil, status.Errorf(codes.Unknown, "lstat %s: no such file or directory", root)
	}
	var found []file
	for _, p := range slices.Sorted(maps.Keys(all)) {
		below := strings.TrimPrefix(p, strings.TrimSuffix(root, "/"))
		if p != root && (!strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/") || depth >= 0 && strings.Count(below, "/") > max(depth, 1)) {
			continue
		}
		found = append(found, all[p])
	}

	return found, nil
}

func clean(root string) string { return path.Clean("/" + root) }

// Read serves a file.
func (s *machineServer) Read(in *machine.ReadRequest, out grpc.ServerStreamingServer[common.Data]) error {
	content, ok := files(s.node)[in.GetPath()]
	if !ok {
		return status.Errorf(codes.NotFound, "stat %s: no such file or directory", in.GetPath())
	}

	return out.Send(&common.Data{Bytes: []byte(content)}) // the caller's own stream
}

// List lists the node's files.
func (s *machineServer) List(in *machine.ListRequest, out grpc.ServerStreamingServer[machine.FileInfo]) error {
	root, depth := clean(in.GetRoot()), 0
	if in.GetRecurse() {
		depth = int(in.GetRecursionDepth())
		if depth == 0 {
			depth = -1
		}
	}
	found, err := walk(s.node, root, depth)
	if err != nil {
		return err
	}
	for _, f := range found {
		kind := machine.ListRequest_REGULAR
		if f.folder {
			kind = machine.ListRequest_DIRECTORY
		}
		if len(in.GetTypes()) > 0 && !slices.Contains(in.GetTypes(), kind) {
			continue
		}
		info := &machine.FileInfo{
			Name: f.path, RelativeName: relative(root, f.path), Size: f.size, IsDir: f.folder, Mode: 0o644, Modified: s.node.Started.Unix(),
		}
		if f.folder {
			info.Mode = uint32(fs.ModeDir | 0o755)
		}
		if err := out.Send(info); err != nil {
			return err // the caller's own stream
		}
	}

	return nil
}

func relative(root, p string) string {
	if p == root {
		return "."
	}

	return strings.TrimPrefix(strings.TrimPrefix(p, root), "/")
}

// DiskUsage tells how much folders hold: those of which files are shown, with these.
func (s *machineServer) DiskUsage(in *machine.DiskUsageRequest, out grpc.ServerStreamingServer[machine.DiskUsageInfo]) error {
	for _, root := range in.GetPaths() {
		root = clean(root)
		found, err := walk(s.node, root, -1)
		if err != nil {
			sent := out.Send(&machine.DiskUsageInfo{Name: root, RelativeName: root, Error: status.Convert(err).Message()})
			if sent != nil {
				return sent // the caller's own stream
			}

			continue
		}
		slices.Reverse(found) // a folder comes after what it holds
		for _, f := range found {
			depth := strings.Count(strings.TrimPrefix(f.path, root), "/")
			limit := int(in.GetRecursionDepth())
			if !f.folder && !in.GetAll() || limit > 0 && depth >= limit {
				continue
			}
			info := &machine.DiskUsageInfo{Name: f.path, RelativeName: relative(root, f.path), Size: usage(found, f)}
			if err := out.Send(info); err != nil {
				return err // the caller's own stream
			}
		}
	}

	return nil
}

func usage(all []file, of file) int64 {
	sum := int64(0)
	for _, f := range all {
		if f.path == of.path || !f.folder && strings.HasPrefix(f.path, strings.TrimSuffix(of.path, "/")+"/") {
			sum += f.size
		}
	}

	return sum
}
