// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package proxmoxve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The pauses between looks. The genuine provider looks each second at tasks and each five at the
// agent; the lab's tasks take less than that.
const (
	taskPoll  = 100 * time.Millisecond
	agentPoll = 500 * time.Millisecond
)

// errRunning: look again.
var errRunning = errors.New("still running")

// poll looks until look returns something else than [errRunning], or ctx ends.
func poll(ctx context.Context, pause time.Duration, look func() error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()

	for {
		if err := look(); !errors.Is(err, errRunning) {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// run makes a call that starts a task and waits for it.
func (a *api) run(ctx context.Context, method, path string, form url.Values) error {
	_, err := a.runLogged(ctx, method, path, form, false)
	return err
}

// runLogged runs a task and returns its log; with warnings it takes a task that ended with them.
func (a *api) runLogged(
	ctx context.Context, method, path string, form url.Values, warnings bool,
) ([]string, error) {
	var upid string
	if err := a.do(ctx, method, path, form, &upid); err != nil {
		return nil, err
	}
	if upid == "" {
		return nil, nil // the storage was done at once
	}

	exit, err := a.await(ctx, upid)
	if err != nil {
		return nil, err
	}
	if exit == "OK" {
		return nil, nil
	}

	if warnings && strings.HasPrefix(exit, "WARNINGS: ") && !strings.Contains(exit, "ERROR") {
		return a.taskLog(ctx, upid), nil
	}

	return nil, fmt.Errorf("task %q failed to complete with exit code: %s", upid, exit)
}

// nodeOf reads the node out of UPID:<node>:….
func nodeOf(upid string) string {
	parts := strings.SplitN(upid, ":", 3)
	if len(parts) < 3 {
		return ""
	}

	return parts[1]
}

func (a *api) await(ctx context.Context, upid string) (string, error) {
	status := struct{ Status, ExitStatus string }{}
	path := "nodes/" + nodeOf(upid) + "/tasks/" + url.PathEscape(upid) + "/status"

	err := poll(ctx, taskPoll, func() error {
		err := a.get(ctx, path, &status)

		var refused *httpError
		if errors.As(err, &refused) && refused.code == http.StatusBadRequest {
			return errRunning // the task is not in the list yet
		}
		if err == nil && status.Status == "running" {
			return errRunning
		}

		return err
	})

	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("timeout while waiting for task %q to complete", upid)
	case err != nil:
		return "", fmt.Errorf("error while waiting for task %q to complete: %w", upid, err)
	}

	return status.ExitStatus, nil
}

func (a *api) taskLog(ctx context.Context, upid string) []string {
	var lines []struct {
		T string `json:"t"`
	}
	if err := a.get(ctx, "nodes/"+nodeOf(upid)+"/tasks/"+url.PathEscape(upid)+"/log", &lines); err != nil {
		return nil
	}

	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.T
	}

	return out
}
