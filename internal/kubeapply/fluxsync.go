// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubeapply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talos-proxmox/talos-proxmox/internal/cluster"
)

// FluxSync names what to wait for: the repository's object, and the Kustomizations beside it that read it.
type FluxSync struct {
	// Repository is the path of the GitRepository in the API, Kustomizations that of their collection.
	Repository, Kustomizations string
	// Name is the GitRepository's name, and that of the Kustomization that has to be there.
	Name string
}

const (
	// requestedAt names the annotation that has Flux reconcile an object at once.
	requestedAt = "reconcile.fluxcd.io/requestedAt"
	// lastingFailure is how long Flux may take to recover from a failure that it reports.
	lastingFailure = time.Minute
)

// WaitFluxSync has Flux reconcile the repository and then every Kustomization that reads it, and waits until
// all are ready. The error repeats what Flux says of a failure that persists.
func WaitFluxSync(ctx context.Context, api Objects, what FluxSync, p cluster.PollOptions, report func(line string)) error {
	waiting, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()

	f := &fluxWaiter{
		api: api, what: what, poll: p, report: report,
		started: time.Now(), seen: map[string]*syncedObject{},
	}
	f.token = f.started.UTC().Format(time.RFC3339Nano)
	for _, look := range []func(context.Context) (bool, error){f.repository, f.kustomizations} {
		err := cluster.Poll(waiting, p.Interval, func(ctx context.Context) (bool, error) {
			call, cancel := context.WithTimeout(ctx, p.Call)
			defer cancel()

			return look(call)
		})
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("waiting for Flux: %w", ctx.Err())
		}
		if err != nil {
			return f.failure(err)
		}
	}
	report("Flux has applied what the repository says")

	return nil
}

// fluxWaiter waits for everything that reads one repository.
type fluxWaiter struct {
	api     Objects
	what    FluxSync
	poll    cluster.PollOptions
	report  func(line string)
	token   string // of what this run asks of Flux
	started time.Time
	seen    map[string]*syncedObject // by kind and name
}

// syncedObject holds what was seen last of an object.
type syncedObject struct {
	asked   bool
	ready   bool
	message string
	since   time.Time // when the failure that message tells of was seen first
}

// errLasts ends the wait when a failure persists past lastingFailure.
var errLasts = errors.New("the failure lasts")

func (f *fluxWaiter) repository(ctx context.Context) (bool, error) {
	const what = "GitRepository"
	o := f.object(what + " " + f.what.Name)
	if !f.ask(ctx, o, what+" "+f.what.Name, f.what.Repository) {
		return false, nil
	}
	text, err := f.api.Get(ctx, f.what.Repository)
	if err != nil {
		return false, f.unanswered(o, what+" "+f.what.Name, err)
	}
	var state fluxState
	if err := json.Unmarshal(text, &state); err != nil {
		return false, fmt.Errorf("reading %s: %w", what, err)
	}

	return f.assess(o, what+" "+f.what.Name, state)
}

func (f *fluxWaiter) kustomizations(ctx context.Context) (bool, error) {
	root := f.object("Kustomization " + f.what.Name)
	text, err := f.api.Get(ctx, f.what.Kustomizations)
	if err != nil {
		return false, f.unanswered(root, "Kustomization "+f.what.Name, err)
	}
	var list struct {
		Items []fluxState `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return false, fmt.Errorf("reading Kustomizations: %w", err)
	}
	all, lasts := true, false
	for _, state := range list.Items {
		source := state.Spec.SourceRef
		if source.Kind != "GitRepository" || source.Name != f.what.Name || state.Spec.Suspend {
			continue
		}
		name := "Kustomization " + state.Metadata.Name
		o := f.object(name)
		done := false
		if f.ask(ctx, o, name, f.what.Kustomizations+"/"+state.Metadata.Name) {
			done, err = f.assess(o, name, state)
		}
		all, lasts = all && done, lasts || err != nil
	}
	if lasts {
		return false, errLasts
	}
	if _, there := f.seen["Kustomization "+f.what.Name]; !there || !root.asked {
		f.say(root, "Kustomization "+f.what.Name, "is not there", false)

		return false, nil
	}

	return all, nil
}

func (f *fluxWaiter) object(name string) *syncedObject {
	if f.seen[name] == nil {
		f.seen[name] = &syncedObject{}
	}

	return f.seen[name]
}

// ask requests a reconciliation once, and reports whether it was requested.
func (f *fluxWaiter) ask(ctx context.Context, o *syncedObject, name, path string) bool {
	if o.asked {
		return true
	}
	if err := f.api.Annotate(ctx, path, requestedAt, f.token); err != nil {
		_ = f.unanswered(o, name, err) // it is tried again

		return false
	}
	o.asked = true

	return true
}

// assess reports whether Flux reconciled an object successfully since it was asked.
func (f *fluxWaiter) assess(o *syncedObject, name string, state fluxState) (bool, error) {
	ready := state.ready()
	o.ready = false
	switch {
	case state.Status.Handled != f.token && ready.Status != "False":
		f.say(o, name, "Flux has not looked at it yet", false)
	case ready.Status == "True" && state.Status.Generation == state.Metadata.Generation:
		o.ready, o.message = true, ready.Message
	default:
		f.say(o, name, ready.Message, ready.Status == "False")
	}
	if !o.since.IsZero() && time.Since(o.since) > lastingFailure {
		return false, errLasts
	}

	return o.ready, nil
}

// unanswered records why the API did not answer; the API may come back, and the object may appear.
func (f *fluxWaiter) unanswered(o *syncedObject, name string, err error) error {
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return err
	case apierrors.IsNotFound(err):
		f.say(o, name, "is not there", false)
	default:
		f.say(o, name, err.Error(), false)
	}

	return nil
}

// say reports a message once, and restarts the clock of a failure when the message changes.
func (f *fluxWaiter) say(o *syncedObject, name, message string, failure bool) {
	message = strings.TrimSpace(message)
	if message != o.message {
		o.message, o.since = message, time.Time{}
		f.report("waiting: " + name + ": " + message)
	}
	switch {
	case !failure:
		o.since = time.Time{}
	case o.since.IsZero():
		o.since = time.Now()
	}
}

// failure returns what Flux says is wrong; when nothing failed, what was waited for.
func (f *fluxWaiter) failure(err error) error {
	var failed, waited []string
	for _, name := range slices.Sorted(maps.Keys(f.seen)) {
		o := f.seen[name]
		switch {
		case o.ready:
		case !o.since.IsZero():
			failed = append(failed, name+": "+o.message)
		default:
			waited = append(waited, name+": "+o.message)
		}
	}
	if len(failed) == 0 {
		failed = waited
	}
	after := time.Since(f.started).Round(time.Second)
	if len(failed) == 0 || !errors.Is(err, errLasts) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("Flux does not follow the repository after %s: %w", after, err)
	}

	return fmt.Errorf("Flux does not follow the repository after %s:\n  %s", after, strings.Join(failed, "\n  "))
}

// fluxState decodes the part of an object that holds its status.
type fluxState struct {
	Metadata struct {
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Suspend   bool `json:"suspend"`
		SourceRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"sourceRef"`
	} `json:"spec"`
	Status struct {
		Generation int64           `json:"observedGeneration"`
		Handled    string          `json:"lastHandledReconcileAt"`
		Conditions []fluxCondition `json:"conditions"`
	} `json:"status"`
}

type fluxCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func (s fluxState) ready() fluxCondition {
	for _, c := range s.Status.Conditions {
		if c.Type == "Ready" {
			return c
		}
	}

	return fluxCondition{Message: "no condition yet"}
}
