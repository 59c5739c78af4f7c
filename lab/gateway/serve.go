// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/ca"
	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// HTTPS serves handler behind TLS at every name and port that match holds for and no machine of the
// site listens on. Certificates are issued for the name that is asked for.
func HTTPS(
	ctx context.Context, n *guest.Net, authority *ca.Authority, log *slog.Logger,
	match func(host string, port uint16) bool, handler http.Handler,
) {
	conns := newConns()
	serve(ctx, conns, log, handler)
	n.Catch(match, func(conn net.Conn, host string) {
		conns.put(tls.Server(conn, &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"},
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				if hello.ServerName != "" {
					return authority.Certificate(hello.ServerName)
				}

				return authority.Certificate(host)
			},
		}))
	})
}

// HTTP serves what [HTTPS] serves, without TLS.
func HTTP(
	ctx context.Context, n *guest.Net, log *slog.Logger,
	match func(host string, port uint16) bool, handler http.Handler,
) {
	conns := newConns()
	serve(ctx, conns, log, handler)
	n.Catch(match, func(conn net.Conn, _ string) { conns.put(conn) })
}

func serve(ctx context.Context, conns *conns, log *slog.Logger, handler http.Handler) {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := server.Serve(conns); !errors.Is(err, http.ErrServerClosed) {
			log.Error("a service of the lab stopped", "error", err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() }) // closes what it serves; nothing is left to do
}

// conns listens for connections that were dialled within the process.
type conns struct {
	queue chan net.Conn
	done  chan struct{}
	close func()
}

func newConns() *conns {
	c := &conns{queue: make(chan net.Conn), done: make(chan struct{})}
	c.close = sync.OnceFunc(func() { close(c.done) })

	return c
}

func (c *conns) put(conn net.Conn) {
	select {
	case c.queue <- conn:
	case <-c.done:
		_ = conn.Close()
	}
}

// Accept implements [net.Listener].
func (c *conns) Accept() (net.Conn, error) {
	select {
	case conn := <-c.queue:
		return conn, nil
	case <-c.done:
		return nil, fmt.Errorf("accepting: %w", net.ErrClosed)
	}
}

// Close implements [net.Listener].
func (c *conns) Close() error {
	c.close()

	return nil
}

// Addr implements [net.Listener].
func (c *conns) Addr() net.Addr { return &net.UnixAddr{Name: "lab", Net: "unix"} }
