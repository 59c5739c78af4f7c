// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// Gateway serves a CONNECT proxy into a site.
type Gateway struct {
	net    *guest.Net
	log    *slog.Logger
	server *http.Server
	addr   string
	plain  *http.Transport
}

// Start runs a proxy on address, "127.0.0.1:0" for any free port.
func Start(n *guest.Net, address string, log *slog.Logger) (*Gateway, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("starting the gateway: %w", err)
	}

	g := &Gateway{
		net: n, log: log, addr: l.Addr().String(),
		plain: &http.Transport{DialContext: n.DialFromOutside, DisableKeepAlives: true},
	}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		if err := g.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the gateway stopped", "error", err)
		}
	}()

	return g, nil
}

// Addr returns the proxy's host and port.
func (g *Gateway) Addr() string { return g.addr }

// URL returns the proxy's address for HTTPS_PROXY.
func (g *Gateway) URL() string { return "http://" + g.addr }

// Close stops the proxy; tunnels end with their endpoints.
func (g *Gateway) Close() error {
	if err := g.server.Close(); err != nil {
		return fmt.Errorf("stopping the gateway: %w", err)
	}

	return nil
}

// ServeHTTP implements the proxy.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		g.connect(w, r)

		return
	}
	if !r.URL.IsAbs() {
		http.Error(w, "this is the lab's proxy; set HTTPS_PROXY to it", http.StatusBadRequest)

		return
	}
	g.forward(w, r)
}

func (g *Gateway) connect(w http.ResponseWriter, r *http.Request) {
	up, err := g.net.DialFromOutside(r.Context(), "tcp", r.Host)
	if err != nil {
		g.refuse(w, r.Host, err)

		return
	}

	hijacker, ok := w.(http.Hijacker)
	if !ok {
		_ = up.Close()
		http.Error(w, "this connection cannot be tunnelled", http.StatusInternalServerError)

		return
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		_ = up.Close()
		g.log.Debug("tunnel", "to", r.Host, "error", err)

		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_, _ = up.Close(), client.Close()

		return
	}

	go func() {
		_, _ = io.Copy(up, buffered) // either side may go at any time
		if half, ok := up.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		} else {
			_ = up.Close()
		}
	}()
	go func() {
		_, _ = io.Copy(client, up) // either side may go at any time
		_, _ = client.Close(), up.Close()
	}()
}

func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	for _, h := range []string{"Proxy-Connection", "Proxy-Authorization", "Connection"} {
		out.Header.Del(h)
	}

	res, err := g.plain.RoundTrip(out)
	if err != nil {
		g.refuse(w, r.Host, err)

		return
	}
	defer func() { _ = res.Body.Close() }() // read to its end below

	for k, v := range res.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // the client is gone when this fails
}

// refuse answers 502 with a sentence. It is the reason phrase too, since that is what clients show when
// a proxy refuses to connect.
func (g *Gateway) refuse(w http.ResponseWriter, host string, err error) {
	g.log.Debug("nobody there", "address", host, "error", err)
	sentence := Sentence(host, err)

	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, sentence, http.StatusBadGateway)

		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // everything was written, or nobody reads it

	_, _ = fmt.Fprintf(conn,
		"HTTP/1.1 502 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		sentence, len(sentence)+1, sentence) // the client is gone when this fails
}

// Sentence says why the lab could not connect to an address.
func Sentence(address string, err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	if strings.Contains(err.Error(), "no such host") {
		return fmt.Sprintf("the lab has nobody at %s; nothing here leaves this machine", address)
	}

	return fmt.Sprintf("the lab cannot connect to %s: %s", address, strings.TrimPrefix(err.Error(), address+": "))
}

// Dial connects to an address of the site, as every client of the gateway does.
func (g *Gateway) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return g.net.DialFromOutside(ctx, network, address)
}
