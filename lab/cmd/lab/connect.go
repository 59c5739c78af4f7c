// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// connect joins standard input and output to an address of the site, as ssh's ProxyCommand does.
func connect(o options, args []string) error {
	if len(args) != 2 { // host and port
		return errors.New("connect: name a host and a port, as in `lab connect git.example.com 22`")
	}
	i, err := o.siteDir().Info()
	if err != nil {
		return err // says what to do
	}
	address := net.JoinHostPort(args[0], args[1])
	conn, err := net.Dial("tcp", strings.TrimPrefix(i.Gateway, "http://"))
	if err != nil {
		return fmt.Errorf("connecting to the lab: %w", err)
	}
	defer func() { _ = conn.Close() }() // both directions have ended

	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return fmt.Errorf("connecting to %s: %w", address, err)
	}
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", address, err)
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(strings.TrimPrefix(res.Status, "502 "))
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin) // either side may go at any time
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, _ = io.Copy(os.Stdout, in) // as above

	return nil
}

// knownHosts prints the lines of ~/.ssh/known_hosts for git hosts of the site.
func knownHosts(o options, args []string) error {
	if len(args) == 0 {
		return errors.New("known-hosts: name a git host, as in `lab known-hosts git.example.com`, or HOST:PORT")
	}
	i, err := running(o)
	if err != nil {
		return err
	}
	for _, name := range args {
		if host, port, err := net.SplitHostPort(name); err == nil {
			if name = host; port != "22" {
				name = "[" + host + "]:" + port
			}
		}
		fmt.Println(name, i.HostKey)
	}

	return nil
}
