// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// relayConnections leads connections from outside to the nodes: the first line of each says where to.
func relayConnections() {
	listener, err := net.FileListener(os.NewFile(3, "socket")) // the guard's, made where everybody sees it
	for err == nil {
		var c net.Conn
		if c, err = listener.Accept(); err == nil {
			go relayConnection(c)
		}
	}
	fmt.Fprintln(os.Stderr, "talos-nodes: the nodes cannot be reached any more:", err)
}

func relayConnection(c net.Conn) {
	defer c.Close()
	from := bufio.NewReader(c)
	address, err := from.ReadString('\n')
	if err != nil {
		return
	}
	to, err := net.DialTimeout("tcp", strings.TrimSpace(address), 10*time.Second)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite() // as DialTimeout makes them
	}()
	_, _ = io.Copy(c, to)
}
