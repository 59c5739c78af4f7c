// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package fault

import "slices"

// Kinds returns all kinds.
func Kinds() []Definition {
	return slices.Concat(command(), hosts(), apis(), nodes())
}

func command() []Definition {
	return []Definition{{
		Kind:  Kill,
		Means: "the command of `lab exec` and everything that it started is killed when an operation of the trace begins",
		Keys: []Key{
			{Name: "op", Means: "the operation's name, as `lab trace` prints it", Default: "*", Selects: true, exists: true},
			nth("counted while a command runs"), count("1"),
		},
	}}
}

func hosts() []Definition {
	host := Key{Name: "host", Means: "the host's name", Selects: true, exists: true}
	required := host
	required.Required = true
	task := []Key{
		{Name: "type", Means: "the task's type, qmcreate or download", Required: true, Selects: true, exists: true},
		host,
		{Name: "vm", Means: "the id or name of the task's VM", Selects: true},
		nth("counted from when it was added"), count(""),
	}

	return []Definition{
		{
			Kind: HostDown, Lasting: true, Keys: []Key{required},
			Means: "the host has no power: its VMs stop and its API answers nobody; afterwards those with onboot start",
		},
		{
			Kind: DatastoreFull, Lasting: true,
			Keys:  []Key{{Name: "storage", Means: "the storage's id", Required: true, Selects: true, exists: true}, host},
			Means: "nothing more fits on the storage",
		},
		{
			Kind: TaskError, Means: "a task of a host fails",
			Keys: append(slices.Clone(task), Key{Name: "message", Means: "what the task ends with; Proxmox VE's own words when not set"}),
		},
		{Kind: TaskHang, Means: "a task of a host makes no progress until the fault is removed", Keys: task},
		{
			Kind: DownloadCut, Keys: []Key{host, nth("counted from when it was added"), count("")},
			Means: "a download of a host breaks off in the middle",
		},
		{
			Kind: WrongChecksum, Keys: []Key{host, nth("counted from when it was added"), count("")},
			Means: "a host downloads other bytes than there are; without a checksum it keeps them",
		},
	}
}

func apis() []Definition {
	call := []Key{
		{Name: "api", Means: "proxmox, talos, or web for the Image Factory and chart repositories", Required: true, Selects: true,
			check: oneOf(Proxmox, Talos, Web)},
		{
			Name: "call", Default: "*", Selects: true,
			Means: "the call: a path as in /nodes/*/qemu, or a method of the Talos API as in ApplyConfiguration; * is every call",
		},
		{Name: "method", Means: "the HTTP method", Selects: true},
		{Name: "node", Means: "the node of a Talos API, by name, VM id or address", Selects: true, exists: true},
		nth("counted from when it was added"), count(""),
	}

	return []Definition{
		{
			Kind: Offline, Lasting: true,
			Means: "nothing outside the site answers, neither to its hosts and nodes nor to programs",
			Keys:  []Key{{Name: "but", Means: "the names that answer, by commas; * stands for anything but a slash", check: patterns}},
		},
		{
			Kind: APIError, Means: "an API answers with an error",
			Keys: append(slices.Clone(call),
				Key{Name: "status", Means: "the HTTP status; the Talos API answers Unavailable", Default: "500", check: statusCode},
				Key{Name: "message", Means: "what it says"}),
		},
		{Kind: APITimeout, Means: "an API takes a call and never answers, until the caller gives up or the fault is removed", Keys: call},
		{
			Kind: APISlow, Means: "an API answers late",
			Keys: append(slices.Clone(call), Key{Name: "by", Means: "how late, in real time whatever the lab's speed", Default: "30s",
				check: duration}),
		},
	}
}

func nodes() []Definition {
	node := Key{Name: "node", Means: "the node, by name, VM id or address", Required: true, Selects: true, exists: true}

	return []Definition{
		{
			Kind: NodeLost, Means: "the node dies where it stands and starts again when the fault is removed; its VM goes on running",
			Keys: []Key{node, {
				Name: "when", Means: "now, before-apply, during-apply or after-apply of a configuration", Default: Now, Selects: true,
				check: oneOf(Now, BeforeApply, DuringApply, AfterApply),
			}, nth("counted from when it was added"), count("1")},
		},
		{
			Kind: NoReturn, Keys: []Key{node, nth("counted from when it was added"), count("1")},
			Means: "the node does not come up when it next boots from its disk, until the fault is removed or its VM is reset",
		},
		{Kind: EtcdLost, Lasting: true, Keys: []Key{node}, Means: "etcd does not run on the node"},
		{
			Kind: KubeFlap, Lasting: true, Means: "the API server of a control plane comes and goes",
			Keys: []Key{
				node,
				{Name: "up", Means: "how long it serves, in real time", Default: "30s", check: duration},
				{Name: "down", Means: "how long it does not", Default: "30s", check: duration},
			},
		},
		{
			Kind: CertificateExpired, Lasting: true, Keys: []Key{node},
			Means: "the certificate of the node's Talos API has expired",
		},
		{
			Kind: ClockSkew, Lasting: true, Means: "the node's clock is wrong and not synchronised",
			Keys: []Key{node, {Name: "by", Means: "how far it is ahead; negative when it is behind", Default: "8760h", check: duration}},
		},
	}
}
