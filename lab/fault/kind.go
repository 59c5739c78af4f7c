// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault

import "slices"

// Kind holds what goes wrong.
type Kind string

// The kinds; [Kinds] says what each does.
const (
	Kill               Kind = "kill"
	HostDown           Kind = "host-down"
	DatastoreFull      Kind = "datastore-full"
	TaskError          Kind = "task-error"
	TaskHang           Kind = "task-hang"
	APIError           Kind = "api-error"
	APITimeout         Kind = "api-timeout"
	APISlow            Kind = "api-slow"
	DownloadCut        Kind = "download-cut"
	WrongChecksum      Kind = "wrong-checksum"
	NodeLost           Kind = "node-lost"
	NoReturn           Kind = "no-return"
	EtcdLost           Kind = "etcd-lost"
	KubeFlap           Kind = "kube-flap"
	CertificateExpired Kind = "certificate-expired"
	ClockSkew          Kind = "clock-skew"
	Offline            Kind = "offline"
)

// When a [NodeLost] strikes, for the selector "when".
const (
	Now         = "now"
	BeforeApply = "before-apply"
	DuringApply = "during-apply"
	AfterApply  = "after-apply"
)

// APIs, for the selector "api".
const (
	Proxmox = "proxmox"
	Talos   = "talos"
	Web     = "web"
)

// Key describes a setting that a fault takes when it is added.
type Key struct {
	Name    string
	Means   string
	Default string
	// Required keys have no default.
	Required bool
	// Selects is set where the value is a pattern of whom the fault hits; * stands for anything but a slash.
	Selects bool
	// exists is set where a selector has to fit something that exists.
	exists bool
	check  func(value string) error
}

// Definition says what a kind does and what it is told.
type Definition struct {
	Kind  Kind
	Means string
	Keys  []Key
	// Lasting faults hold from the moment that they are added until they are removed; others strike
	// when something happens.
	Lasting bool
}

// nth lets a fault pass by a few times.
func nth(means string) Key {
	return Key{Name: "nth", Means: "strikes at the nth time, " + means, Default: "1", check: positive}
}

// count ends a fault.
func count(normally string) Key {
	means := "strikes that often"
	if normally == "" {
		means += "; until it is removed when not set"
	}

	return Key{Name: "count", Means: means, Default: normally, check: positive}
}

func definition(k Kind) (Definition, bool) {
	all := Kinds()
	i := slices.IndexFunc(all, func(d Definition) bool { return d.Kind == k })
	if i < 0 {
		return Definition{}, false
	}

	return all[i], true
}

func (d Definition) key(name string) (Key, bool) {
	i := slices.IndexFunc(d.Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}

	return d.Keys[i], true
}
