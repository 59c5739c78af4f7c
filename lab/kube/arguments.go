// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kube

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/lab/site/guest"
)

// pace holds the waits of controllers and kubelets. At high speeds they stay long enough for a busy
// machine: a heartbeat that comes late must not look like a dead node.
type pace struct {
	clock     guest.Clock
	monitor   time.Duration // how often the node lifecycle controller looks
	grace     time.Duration // after which silence it calls a node not ready
	heartbeat time.Duration // how often a kubelet renews its lease
	tolerate  time.Duration // how long pods stay on a node that is not ready

	pull  time.Duration // pulling an image that the node does not have
	start time.Duration // starting a container
	setup time.Duration // what an init container runs
	work  time.Duration // what a container that ends by itself runs
	quit  time.Duration // how long a container takes to end when asked to
	retry time.Duration // until the kubelet tries again what failed
}

func paceOf(c guest.Clock) pace {
	return pace{
		clock:     c,
		monitor:   max(c.Scale(5*time.Second), 500*time.Millisecond),
		grace:     max(c.Scale(50*time.Second), 8*time.Second),
		heartbeat: max(c.Scale(10*time.Second), 1500*time.Millisecond),
		tolerate:  max(c.Scale(300*time.Second), 10*time.Second),
		pull:      c.Scale(5 * time.Second),
		start:     c.Scale(time.Second),
		setup:     c.Scale(2 * time.Second),
		work:      c.Scale(5 * time.Second),
		quit:      c.Scale(2 * time.Second),
		retry:     max(c.Scale(10*time.Second), 300*time.Millisecond),
	}
}

func (p pace) scale(d time.Duration) time.Duration { return p.clock.Scale(d) }

// reservedArgs returns the flags of kube-apiserver that the certificates and ports here depend on.
func reservedArgs() []string {
	return []string{
		"admission-control-config-file", "client-ca-file", "encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile",
		"etcd-prefix", "etcd-servers", "proxy-client-cert-file", "proxy-client-key-file",
		"requestheader-client-ca-file", "service-account-key-file", "service-account-signing-key-file",
		"tls-cert-file", "tls-private-key-file",
	}
}

// ignoredArgs mean something on a node only: where the API server listens is the lab's affair.
func ignoredArgs() []string {
	return []string{"advertise-address", "bind-address", "secure-port"}
}

func apiServerArgs(c Config) []string {
	p := paceOf(c.Clock)
	args := map[string]string{
		"advertise-address":                      "127.0.0.1",
		"allow-privileged":                       "true",
		"anonymous-auth":                         "false",
		"authorization-mode":                     "Node,RBAC",
		"client-ca-file":                         clientCAFile,
		"default-not-ready-toleration-seconds":   seconds(p.tolerate),
		"default-unreachable-toleration-seconds": seconds(p.tolerate),
		"enable-admission-plugins":               "NodeRestriction",
		"enable-aggregator-routing":              "true",
		"enable-bootstrap-token-auth":            "true",
		"endpoint-reconciler-type":               "none",
		"profiling":                              "false",
		"proxy-client-cert-file":                 frontProxy + certSuffix,
		"proxy-client-key-file":                  frontProxy + keySuffix,
		"requestheader-allowed-names":            "front-proxy-client",
		"requestheader-client-ca-file":           aggregatorCAFile,
		"requestheader-extra-headers-prefix":     "X-Remote-Extra-",
		"requestheader-group-headers":            "X-Remote-Group",
		"requestheader-username-headers":         "X-Remote-User",
		"service-account-issuer":                 "https://kubernetes.default.svc." + c.DNSDomain,
		"service-account-key-file":               serviceAccountFile,
		"service-account-signing-key-file":       serviceAccountFile,
		"service-cluster-ip-range":               strings.Join(c.ServiceCIDRs, ","),
		"tls-cert-file":                          apiServer + certSuffix,
		"tls-private-key-file":                   apiServer + keySuffix,
	}
	if c.EncryptionConfig != nil {
		args["encryption-provider-config"] = encryptionFile
	}
	if c.AdmissionConfig != nil {
		args["admission-control-config-file"] = admissionFile
	}
	if c.AuditPolicy != nil {
		args["audit-policy-file"] = auditPolicyFile
		args["audit-log-path"] = "audit.log"
		args["audit-log-maxsize"] = "100"
		args["audit-log-maxbackup"] = "2"
	}

	for name, value := range c.APIServerArgs {
		switch {
		case slices.Contains(ignoredArgs(), name):
		case slices.Contains([]string{"enable-admission-plugins", "authorization-mode"}, name):
			args[name] += "," + value
		default:
			args[name] = value
		}
	}

	return flags(args)
}

func controllerManagerArgs(c Config) []string {
	p := paceOf(c.Clock)

	return flags(map[string]string{
		"allocate-node-cidrs":              "true",
		"cluster-cidr":                     strings.Join(c.PodCIDRs, ","),
		"cluster-signing-cert-file":        caFile,
		"cluster-signing-key-file":         caKeyFile,
		"configure-cloud-routes":           "false",
		"controllers":                      "*,tokencleaner",
		"kube-api-burst":                   "400",
		"kube-api-qps":                     "200",
		"kubeconfig":                       controllerManager + kubeconfigSuffix,
		"leader-elect":                     "false",
		"node-monitor-grace-period":        p.grace.String(),
		"node-monitor-period":              p.monitor.String(),
		"node-startup-grace-period":        p.grace.String(),
		"root-ca-file":                     clientCAFile,
		"secure-port":                      "0",
		"service-account-private-key-file": serviceAccountFile,
		"service-cluster-ip-range":         strings.Join(c.ServiceCIDRs, ","),
	})
}

func schedulerArgs() []string {
	return flags(map[string]string{
		"kube-api-burst": "400",
		"kube-api-qps":   "200",
		"kubeconfig":     scheduler + kubeconfigSuffix,
		"leader-elect":   "false",
		"secure-port":    "0",
	})
}

func flags(args map[string]string) []string {
	out := make([]string, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		out = append(out, "--"+name+"="+args[name])
	}

	return out
}
