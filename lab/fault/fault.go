// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Fault describes a fault that was added.
type Fault struct {
	ID   int  `json:"id"`
	Kind Kind `json:"kind"`
	// With is what it was told, defaults included.
	With  map[string]string `json:"with"`
	Added time.Time         `json:"added"`
	// Seen is how often it could have struck, Struck how often it did.
	Seen   int `json:"seen"`
	Struck int `json:"struck"`

	// Over closes when the fault is removed.
	Over <-chan struct{} `json:"-"`

	over chan struct{}
	end  func(error)
}

// String returns "kill op=talos.bootstrap".
func (f Fault) String() string {
	parts := []string{string(f.Kind)}
	for _, k := range slices.Sorted(maps.Keys(f.With)) {
		parts = append(parts, k+"="+f.With[k])
	}

	return strings.Join(parts, " ")
}

// number returns a setting that was checked to be one; 0 when it is not set.
func (f Fault) number(key string) int {
	n, _ := strconv.Atoi(f.With[key]) // checked when it was added

	return n
}

// Duration returns a setting that says how long; 0 when it is not set.
func (f Fault) Duration(key string) time.Duration {
	d, _ := time.ParseDuration(f.With[key]) // checked when it was added

	return d
}

// About says what is about to happen, by selector: "host" to the names that the host goes by. A fault
// that selects what is not in it does not strike.
type About map[string][]string

// Trace keeps what happened. [site.Trace] is one.
type Trace interface {
	Begin(op, object string, attrs map[string]string) (end func(error))
}

// Set holds the faults of a site. Its methods may be called at the same time.
type Set struct {
	trace Trace
	known Known

	mu      sync.Mutex
	last    int
	faults  []*Fault
	changed chan struct{}
}

// New returns a site's faults, none at first. Known may be nil: then no target is looked for.
func New(trace Trace, known Known) *Set {
	return &Set{trace: trace, known: known, changed: make(chan struct{})}
}

// Add adds a fault. It refuses kinds, settings and targets that do not exist, and says what does.
func (s *Set) Add(k Kind, with map[string]string) (Fault, error) {
	d, full, err := check(k, with, s.known)
	if err != nil {
		return Fault{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.last++
	f := &Fault{ID: s.last, Kind: k, With: full, Added: time.Now(), over: make(chan struct{})}
	f.Over = f.over
	if d.Lasting {
		f.end = s.trace.Begin("fault."+string(k), f.object(), f.attrs())
	}
	s.faults = append(s.faults, f)
	s.tell()

	return *f, nil
}

// Remove ends faults. It refuses ids that do not exist and then removes none.
func (s *Set) Remove(ids ...int) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, id := range ids {
		if !slices.ContainsFunc(s.faults, func(f *Fault) bool { return f.ID == id }) {
			return fmt.Errorf("there is no fault %d; `lab fault list` shows them", id)
		}
	}
	s.remove(func(f *Fault) bool { return slices.Contains(ids, f.ID) })

	return nil
}

// Clear ends every fault and returns how many there were.
func (s *Set) Clear() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	n := len(s.faults)
	s.remove(func(*Fault) bool { return true })

	return n
}

func (s *Set) remove(which func(*Fault) bool) {
	s.faults = slices.DeleteFunc(s.faults, func(f *Fault) bool {
		if !which(f) {
			return false
		}
		close(f.over)
		if f.end != nil {
			f.end(nil)
		}

		return true
	})
	s.tell()
}

func (s *Set) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// List returns the faults in the order in which they were added.
func (s *Set) List() []Fault {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	list := []Fault{}
	for _, f := range s.faults {
		list = append(list, *f)
	}

	return list
}

// Changed closes when a fault is next added or removed, or strikes.
func (s *Set) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.changed
}

// Strike reports whether a fault of that kind strikes now, and counts that it did. Object is whom it
// strikes, for the trace.
func (s *Set) Strike(k Kind, object string, about About) (Fault, bool) {
	if s == nil {
		return Fault{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, f := range s.faults {
		if f.Kind != k || !f.selects(about) {
			continue
		}
		f.Seen++
		if f.Seen < f.number("nth") || (f.number("count") > 0 && f.Struck >= f.number("count")) {
			continue
		}
		f.Struck++
		s.trace.Begin("fault."+string(k), object, f.attrs())(nil)
		s.tell()

		return *f, true
	}

	return Fault{}, false
}

// Holds reports whether a lasting fault of that kind is there.
func (s *Set) Holds(k Kind, about About) (Fault, bool) {
	if s == nil {
		return Fault{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, f := range s.faults {
		if f.Kind == k && f.selects(about) {
			return *f, true
		}
	}

	return Fault{}, false
}

// selects reports whether every selector of the fault fits.
func (f *Fault) selects(about About) bool {
	d, _ := definition(f.Kind) // checked when it was added
	for _, k := range d.Keys {
		pattern, said := f.With[k.Name]
		if !k.Selects || !said {
			continue
		}
		if !slices.ContainsFunc(about[k.Name], func(name string) bool { return matches(pattern, name) }) {
			return false
		}
	}

	return true
}

// object names whom a lasting fault hits.
func (f *Fault) object() string {
	d, _ := definition(f.Kind) // checked when it was added
	for _, k := range d.Keys {
		if pattern := f.With[k.Name]; k.Selects && pattern != "" {
			return k.Name + "/" + pattern
		}
	}

	return "site"
}

func (f *Fault) attrs() map[string]string {
	a := maps.Clone(f.With)
	a["fault"] = strconv.Itoa(f.ID)

	return a
}
