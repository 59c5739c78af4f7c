// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/lab/fault"
)

// adding holds the body of a request for a fault.
type adding struct {
	Kind string            `json:"kind"`
	With map[string]string `json:"with"`
}

// faultRoutes lets faults be added, listed and ended.
func (d *Daemon) faultRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { reply(w, d.faults.List()) })
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) {
		var a adding
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			refuse(w, fmt.Errorf("reading the request: %w", err))

			return
		}
		f, err := d.faults.Add(fault.Kind(a.Kind), a.With)
		if err != nil {
			refuse(w, err)

			return
		}
		reply(w, f)
	})
	mux.HandleFunc("POST /faults/remove", func(w http.ResponseWriter, r *http.Request) {
		var ids []int
		if err := json.NewDecoder(r.Body).Decode(&ids); err != nil {
			refuse(w, fmt.Errorf("reading the request: %w", err))

			return
		}
		if err := d.faults.Remove(ids...); err != nil {
			refuse(w, err)

			return
		}
		reply(w, len(ids))
	})
	mux.HandleFunc("POST /faults/clear", func(w http.ResponseWriter, _ *http.Request) { reply(w, d.faults.Clear()) })
}

// known tells what a fault can hit.
func (d *Daemon) known(selector string) (names []string, checked bool) {
	switch selector {
	case "op":
		return operations(), true
	case "type":
		for _, op := range operations() {
			if task, ok := strings.CutPrefix(op, "pve."); ok {
				names = append(names, task)
			}
		}

		return names, true
	case "host":
		for _, c := range d.site.Clusters() {
			for _, h := range c.Hosts() {
				names = append(names, h.Name)
			}
		}

		return names, true
	case "storage":
		for _, c := range d.site.Clusters() {
			for _, s := range c.StorageConfigs() {
				names = append(names, s.ID)
			}
		}

		return names, true
	case "node":
		return d.site.NodeNames(), true
	}

	return nil, false
}

// Faults returns what goes wrong in the lab.
func (d *Daemon) Faults() *fault.Set { return d.faults }

// Faults lists what goes wrong in the running lab.
func (p SiteDir) Faults() ([]fault.Fault, error) {
	var list []fault.Fault

	return list, p.send(http.MethodGet, "/faults", nil, &list)
}

// AddFault makes something go wrong in the running lab; see [fault.Set.Add].
func (p SiteDir) AddFault(kind fault.Kind, with map[string]string) (fault.Fault, error) {
	var f fault.Fault

	return f, p.send(http.MethodPost, "/faults", adding{Kind: string(kind), With: with}, &f)
}

// RemoveFaults ends faults of the running lab and returns how many.
func (p SiteDir) RemoveFaults(ids ...int) (int, error) {
	var n int

	return n, p.send(http.MethodPost, "/faults/remove", ids, &n)
}

// ClearFaults ends every fault of the running lab and returns how many there were.
func (p SiteDir) ClearFaults() (int, error) {
	var n int

	return n, p.send(http.MethodPost, "/faults/clear", nil, &n)
}
