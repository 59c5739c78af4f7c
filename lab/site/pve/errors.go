// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package pve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Error describes an answer of Proxmox VE that is not a success. Its texts are those of Proxmox VE.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Message is one line.
	Message string
	// Fields are problems by parameter name.
	Fields map[string]string
}

// Error implements error.
func (e *Error) Error() string {
	if len(e.Fields) == 0 {
		return e.Message
	}

	var parts []string
	for k, v := range e.Fields {
		parts = append(parts, k+": "+v)
	}
	slices.Sort(parts)

	return e.Message + " (" + strings.Join(parts, " - ") + ")"
}

// Errorf returns what a `die` in Proxmox VE's code becomes: status 500.
func Errorf(format string, args ...any) *Error {
	return &Error{Status: http.StatusInternalServerError, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns a parameter that Proxmox VE does not take: status 400.
func Invalid(field, format string, args ...any) *Error {
	return &Error{
		Status: http.StatusBadRequest, Message: "Parameter verification failed.",
		Fields: map[string]string{field: fmt.Sprintf(format, args...)},
	}
}
