// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package site

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/pve"
)

const (
	tasksFile = "tasks.jsonl"
	keptTasks = 2000
	exitOK    = "OK"
)

// Task describes a job of a host.
type Task struct {
	UPID  string    `json:"upid"`
	Node  string    `json:"node"`
	Type  string    `json:"type"` // "qmcreate", "download", …
	ID    string    `json:"id"`
	User  string    `json:"user"`
	PID   int64     `json:"pid"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"` // zero while it runs
	// Exit is "" while it runs, then "OK" or what went wrong.
	Exit string   `json:"exit"`
	Log  []string `json:"log"`
}

// sayf adds a line to a task's log.
type sayf = func(format string, args ...any)

// job holds what a task does.
type job func(ctx context.Context, say sayf) error

// spawn starts a task and returns its UPID.
func (s *Site) spawn(node, kind, id, user string, do job) string {
	s.mu.Lock()
	s.pid++
	now := time.Now()
	t := &Task{Node: node, Type: kind, ID: id, User: user, PID: s.pid, Start: now}
	t.UPID = fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", node, s.pid, now.UnixNano()/1e7&0xffffffff, now.Unix(), kind, id, user)
	s.tasks[t.UPID] = t
	s.order = append(s.order, t.UPID)
	for len(s.order) > keptTasks {
		delete(s.tasks, s.order[0])
		s.order = s.order[1:]
	}
	s.mu.Unlock()

	object := "node/" + node
	if id != "" {
		object = kind + "/" + id
	}
	end := s.opts.Trace.Begin("pve."+kind, object, map[string]string{"node": node, "upid": t.UPID})

	s.work.Go(func() {
		var err error
		if kind != "qmcreate" { // it takes back what it has reserved when it fails
			err = s.trouble(s.ctx, node, kind, id)
		}
		if err == nil {
			err = do(s.ctx, func(format string, args ...any) {
				s.logs.Lock()
				defer s.logs.Unlock()
				t.Log = append(t.Log, fmt.Sprintf(format, args...))
			})
		}
		end(err)
		s.finish(t, err)
	})

	return t.UPID
}

func (s *Site) finish(t *Task, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs.Lock()
	defer s.logs.Unlock()

	t.End, t.Exit = time.Now(), exitOK
	if err != nil {
		t.Exit = strings.ReplaceAll(err.Error(), "\n", " ")
		t.Log = append(t.Log, "TASK ERROR: "+t.Exit)
		s.opts.Log.Warn("task failed", "task", t.UPID, "error", t.Exit)
	} else {
		t.Log = append(t.Log, "TASK OK")
	}

	if line, err := json.Marshal(t); err == nil {
		s.appendTask(append(line, '\n'))
	}
}

// appendTask keeps a finished task, so that whoever waits for it can ask after a restart too.
func (s *Site) appendTask(line []byte) {
	f, err := os.OpenFile(filepath.Join(s.opts.Dir, tasksFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.opts.Log.Error("keeping a task", "error", err)

		return
	}
	defer func() { _ = f.Close() }() // written below; a lost line costs a task's log

	if _, err := f.Write(line); err != nil {
		s.opts.Log.Error("keeping a task", "error", err)
	}
}

func (s *Site) loadTasks() error {
	data, err := os.ReadFile(filepath.Join(s.opts.Dir, tasksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the site's tasks: %w", err)
	}

	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var t Task
		if json.Unmarshal(lines.Bytes(), &t) != nil || t.UPID == "" {
			continue // the last line of a lab that was killed
		}
		s.tasks[t.UPID] = &t
		s.order = append(s.order, t.UPID)
	}
	if n := len(s.order) - keptTasks; n > 0 {
		for _, id := range s.order[:n] {
			delete(s.tasks, id)
		}
		s.order = s.order[n:]
	}

	return nil
}

// Task returns a task by its UPID. One that the site no longer knows, because the lab was killed while
// it ran, has ended with "unexpected status".
func (s *Site) Task(upid string) (Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if t, ok := s.tasks[upid]; ok {
		s.logs.Lock()
		defer s.logs.Unlock()
		c := *t
		c.Log = append([]string(nil), t.Log...)

		return c, nil
	}

	parts := strings.Split(upid, ":")
	if len(parts) != 9 || parts[0] != "UPID" {
		return Task{}, pve.Invalid("upid", "unable to parse worker upid '%s'", upid)
	}

	return Task{UPID: upid, Node: parts[1], Type: parts[5], ID: parts[6], User: parts[7], End: time.Now(), Exit: "unexpected status"}, nil
}

// Tasks returns a host's tasks, the newest first; node "" means every host.
func (s *Site) Tasks(node string) []Task {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.logs.Lock()
	defer s.logs.Unlock()

	var ts []Task
	for i := len(s.order) - 1; i >= 0; i-- {
		if t := s.tasks[s.order[i]]; node == "" || t.Node == node {
			ts = append(ts, *t)
		}
	}

	return ts
}

// Wait waits until a task has ended and returns its error, nil for "OK".
func (s *Site) Wait(ctx context.Context, upid string) error {
	const poll = 5 * time.Millisecond

	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	for {
		t, err := s.Task(upid)
		if err != nil {
			return err
		}
		if t.Exit == exitOK {
			return nil
		}
		if t.Exit != "" {
			return errors.New(t.Exit)
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for task %s: %w", upid, ctx.Err())
		case <-ticker.C:
		}
	}
}
