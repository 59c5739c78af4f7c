// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// pause keeps a pod's namespaces, as the image of that name does.
func pause() error {
	awaitTermination()

	return nil
}

// awaitTermination returns when the process is asked to end. As the first process of a container it waits for others' ends, too.
func awaitTermination() {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	<-ends
}

// cniConfig leads a node's pods to a bridge in it, from which nothing leads to other nodes.
const cniConfig = `{"cniVersion": "1.0.0", "name": "nodes", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
"ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`

// cni gives the node a network for pods, as a CNI's own pod does.
func cni() error {
	parts := strings.Split(os.Getenv("NODE_ADDRESS"), ".")
	subnet := fmt.Sprintf("10.244.%s.0/24", parts[len(parts)-1])
	if err := os.WriteFile("/etc/cni/net.d/10-nodes.conflist", fmt.Appendf(nil, cniConfig, subnet), 0o644); err != nil {
		return fmt.Errorf("writing the network's configuration: %w", err)
	}
	awaitTermination()

	return nil
}

// web answers at port 80 until it is asked to end, and then for as long as ENDS_AFTER says; with ENDS_AT_ONCE it is done.
func web() error {
	if os.Getenv("ENDS_AT_ONCE") != "" {
		return nil
	}
	listener, err := net.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	awaitTermination()
	if after, err := time.ParseDuration(os.Getenv("ENDS_AFTER")); err == nil {
		time.Sleep(after)
	}

	return nil
}
