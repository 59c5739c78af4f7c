// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmox

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
)

const (
	rootUser     = "root@pam"
	ticketCookie = "PVEAuthCookie"
	csrfHeader   = "CSRFPreventionToken"
)

// Token describes an API token.
type Token struct {
	// Value is the whole token, "root@pam!lab=11111111-2222-…".
	Value string
	// Grants are what it may do, and where; nil means everything.
	Grants Grants
}

// Auth says who may use the API. Safe for concurrent use once it serves.
type Auth struct {
	Tokens []Token
	// Password is that of root@pam.
	Password string

	mu      sync.Mutex
	tickets map[string]string // ticket → CSRF token
}

// caller names who makes a request.
type caller struct {
	user   string // "root@pam", "root@pam!lab"
	grants Grants
}

// authenticate finds out who calls. The answer of a request without a valid token or ticket is 401.
func (a *Auth) authenticate(r *http.Request) (caller, *failure) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "PVEAPIToken="); ok {
		for _, t := range a.Tokens {
			if subtle.ConstantTimeCompare([]byte(t.Value), []byte(token)) == 1 {
				user, _, _ := strings.Cut(t.Value, "=")

				return caller{user: user, grants: t.Grants}, nil
			}
		}
		if user, _, ok := strings.Cut(token, "="); ok && strings.Contains(user, "!") && strings.Contains(user, "@") {
			return caller{}, &failure{status: http.StatusUnauthorized, message: "invalid token value!"}
		}

		return caller{}, &failure{status: http.StatusUnauthorized, message: "no tokenid specified"}
	}

	cookie, err := r.Cookie(ticketCookie)
	if err != nil {
		return caller{}, &failure{status: http.StatusUnauthorized, message: "No ticket"}
	}

	a.mu.Lock()
	csrf, ok := a.tickets[cookie.Value]
	a.mu.Unlock()
	switch {
	case !ok:
		return caller{}, &failure{status: http.StatusUnauthorized, message: "invalid PVE ticket"}
	case r.Method != http.MethodGet && r.Header.Get(csrfHeader) != csrf:
		return caller{}, &failure{status: http.StatusUnauthorized, message: "Permission denied - invalid csrf token"}
	}

	return caller{user: rootUser}, nil
}

// login gives a ticket for the password of root@pam.
func (a *Auth) login(username, password string) (map[string]any, *failure) {
	if username != rootUser || a.Password == "" || subtle.ConstantTimeCompare([]byte(password), []byte(a.Password)) != 1 {
		return nil, &failure{status: http.StatusUnauthorized, message: "authentication failure"}
	}

	ticket, csrf := "PVE:"+rootUser+":"+random(), random()
	a.mu.Lock()
	if a.tickets == nil {
		a.tickets = map[string]string{}
	}
	a.tickets[ticket] = csrf
	a.mu.Unlock()

	return map[string]any{"username": rootUser, "ticket": ticket, csrfHeader: csrf, "clustername": "lab"}, nil
}

func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails

	return hex.EncodeToString(b[:])
}
