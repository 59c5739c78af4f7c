// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package githost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/standin/bridge"
)

var errNotFound = errors.New("404 Not Found")

// api calls a git host's API.
type api struct {
	base, header, token string
	owner               string // of GitHub's repositories
}

func apiOf(op *bridge.Op) (*api, error) {
	a, ok := op.Client.(*api)
	if !ok {
		return nil, errors.New("the provider is not configured")
	}

	return a, nil
}

// call sends a request and decodes the answer.
func (a *api) call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.base, "/")+path, content)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	name, value, _ := strings.Cut(a.header, ": ")
	req.Header.Set(name, value+a.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read below

	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w", method, req.URL, errNotFound)
	case res.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s %s: %s %s", method, req.URL, res.Status, bytes.TrimSpace(text))
	case into == nil:
		return nil
	}

	return json.Unmarshal(text, into)
}

// keys describes the deploy keys of one kind of git host.
type keys struct {
	// at is the collection in the API.
	at func(a *api, in bridge.Tree) string
	// body is a key as the API takes it, id what identifies the resource.
	body func(in bridge.Tree) map[string]any
	id   func(in bridge.Tree, number string) string
}

func (k keys) create(ctx context.Context, op *bridge.Op) (string, bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return "", nil, err
	}
	var made struct {
		ID json.Number `json:"id"`
	}
	if err := a.call(ctx, http.MethodPost, k.at(a, op.In), k.body(op.In), &made); err != nil {
		return "", nil, err
	}

	return k.id(op.In, made.ID.String()), nil, nil
}

// number returns the API's id in a resource's.
func number(id string) string { return id[strings.LastIndex(id, ":")+1:] }

func (k keys) read(ctx context.Context, op *bridge.Op) (bridge.Tree, error) {
	a, err := apiOf(op)
	if err != nil {
		return nil, err
	}
	err = a.call(ctx, http.MethodGet, k.at(a, op.State)+"/"+number(op.ID), nil, &struct{}{})
	if errors.Is(err, errNotFound) {
		return nil, nil // gone
	}

	return op.State, err
}

func (k keys) remove(ctx context.Context, op *bridge.Op) error {
	a, err := apiOf(op)
	if err != nil {
		return err
	}
	err = a.call(ctx, http.MethodDelete, k.at(a, op.State)+"/"+number(op.ID), nil, nil)
	if errors.Is(err, errNotFound) {
		return nil
	}

	return err
}
