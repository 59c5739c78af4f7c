// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// What SOCKS version 5 says (RFC 1928).
const (
	socksVersion      = 5
	socksNoAuth       = 0
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	socksGranted      = 0
	socksUnreachable  = 4
	socksUnsupported  = 7
	socksBadAddress   = 8
	socksHandshake    = time.Minute
	socksAddressBytes = 4 + 2 // of the address in an answer, which nobody reads
)

// Socks serves a SOCKS 5 proxy into a site, for clients such as Flux's SSH that know no other.
type Socks struct {
	net      *guest.Net
	log      *slog.Logger
	listener net.Listener
}

// StartSocks runs a SOCKS proxy on address, "127.0.0.1:0" for any free port.
func StartSocks(n *guest.Net, address string, log *slog.Logger) (*Socks, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting the SOCKS gateway: %w", err)
	}
	s := &Socks{net: n, log: log, listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			go s.serve(conn)
		}
	}()

	return s, nil
}

// URL returns the proxy's address for ALL_PROXY; names are looked up in the site.
func (s *Socks) URL() string { return "socks5h://" + s.listener.Addr().String() }

// Close stops the proxy; tunnels end with their endpoints.
func (s *Socks) Close() error { return s.listener.Close() }

func (s *Socks) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // either side has ended it

	_ = conn.SetDeadline(time.Now().Add(socksHandshake)) // fails with what is read next
	address, code, err := socksRequest(conn)
	if err != nil {
		s.log.Debug("a SOCKS client", "error", err)
		if code != socksGranted {
			socksAnswer(conn, code)
		}

		return
	}
	up, err := s.net.DialFromOutside(context.Background(), "tcp", address)
	if err != nil {
		s.log.Debug("nobody there", "address", address, "error", err)
		socksAnswer(conn, socksUnreachable)

		return
	}
	defer func() { _ = up.Close() }()
	socksAnswer(conn, socksGranted)
	_ = conn.SetDeadline(time.Time{}) // as above

	done := make(chan struct{}, 2) // one for each direction
	go func() { _, _ = io.Copy(up, conn); done <- struct{}{} }()
	go func() { _, _ = io.Copy(conn, up); done <- struct{}{} }()
	<-done
}

func socksAnswer(conn net.Conn, code byte) {
	answer := append([]byte{socksVersion, code, 0, socksIPv4}, make([]byte, socksAddressBytes)...)
	_, _ = conn.Write(answer) // the client is gone when this fails
}

// socksRequest reads the greeting and the request of a client; the code is what to answer on an error.
func socksRequest(conn net.Conn) (address string, code byte, err error) {
	head := make([]byte, 2) // version and number of methods
	if _, err := io.ReadFull(conn, head); err != nil {
		return "", socksGranted, err
	}
	if head[0] != socksVersion {
		return "", socksGranted, fmt.Errorf("SOCKS version %d", head[0])
	}
	if _, err := io.CopyN(io.Discard, conn, int64(head[1])); err != nil {
		return "", socksGranted, err
	}
	if _, err := conn.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return "", socksGranted, err
	}

	request := make([]byte, 4) // version, command, reserved, kind of address
	if _, err := io.ReadFull(conn, request); err != nil {
		return "", socksGranted, err
	}
	if request[1] != socksConnect {
		return "", socksUnsupported, fmt.Errorf("SOCKS command %d", request[1])
	}
	host, err := socksHost(conn, request[3])
	if err != nil {
		return "", socksBadAddress, err
	}
	var port [2]byte
	if _, err := io.ReadFull(conn, port[:]); err != nil {
		return "", socksGranted, err
	}

	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:])))), socksGranted, nil
}

func socksHost(conn net.Conn, kind byte) (string, error) {
	length := map[byte]int{socksIPv4: net.IPv4len, socksIPv6: net.IPv6len}[kind]
	if kind == socksName {
		var size [1]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return "", err
		}
		length = int(size[0])
	}
	if length == 0 {
		return "", errors.New("no address")
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(conn, raw); err != nil {
		return "", err
	}
	if kind == socksName {
		return string(raw), nil
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return "", errors.New("no address")
	}

	return addr.String(), nil
}
