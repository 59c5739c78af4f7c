// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package check

import (
	"errors"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// PathError tells of a problem with the setting at a path, found by a function that returns an error.
type PathError struct {
	Path string
	Err  error
}

// At returns an error about the setting at a path; nil for nil.
func At(path string, err error) error {
	if err == nil {
		return nil
	}

	return &PathError{Path: path, Err: err}
}

// Error returns "path: problem".
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the problem itself.
func (e *PathError) Unwrap() error { return e.Err }

// AddError records the problems in an error, joined ones one by one: each at the setting that it names, else at path.
func (l *List) AddError(path string, err error) {
	for _, one := range Split(err) {
		var (
			invalid *spec.InvalidError
			at      *PathError
		)
		switch {
		case errors.As(one, &invalid):
			for _, p := range invalid.Problems {
				l.Add(p)
			}
		case errors.As(one, &at):
			l.AddError(at.Path, at.Err)
		default:
			l.Addf(path, "%s", one)
		}
	}
}

// Split returns the errors that an error joins; none for nil.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, Split(one)...)
	}

	return all
}
