// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
)

// leaseRenewal is how often a kubelet says that its node lives.
const leaseRenewal = 10 * time.Second

// flagForm returns what is wrong with the form of a flag's value; "" when nothing is.
func flagForm(flag, value string) string {
	switch {
	case strings.HasSuffix(flag, "-file") && !path.IsAbs(value):
		return fmt.Sprintf("is %q, which the program does not find: write a path from / on", value)
	case strings.HasPrefix(flag, "concurrent-") && value == "0":
		return "is 0, with which the controller does nothing: write 1 or more"
	case flag == "cors-allowed-origins":
		return corsForm(value)
	case flag == "oidc-issuer-url":
		if _, ok := scope.WebURL(value, "https"); !ok {
			return fmt.Sprintf("is %q, and the API server accepts https:// issuers alone", value)
		}
	case flag == "runtime-config":
		return runtimeConfig(value)
	case flag == "controllers":
		if list := "," + strings.ReplaceAll(value, " ", "") + ","; !strings.Contains(list, ",*,") {
			return "turns on what it lists and nothing else: put * in front, with which all others run too"
		}
	case flag == "listen-metrics-urls":
		return metricsURLs(value)
	}

	return flagTime(flag, value)
}

// flagTime returns what is wrong with a flag that takes a duration; "" when nothing is.
func flagTime(flag, value string) string {
	d, err := time.ParseDuration(value)
	switch flag {
	case "node-monitor-grace-period":
		if err == nil && d <= leaseRenewal {
			return fmt.Sprintf("is %s, and kubelets say every %s that they live, so that nodes would come and go: raise it", value, leaseRenewal)
		}
	case "auto-compaction-retention":
		if _, e := strconv.Atoi(value); e != nil && err != nil {
			return fmt.Sprintf("is %q, and etcd takes a number or a duration such as \"1h\"", value)
		}
	}

	return ""
}

// corsForm returns what is wrong with a list of regular expressions of origins.
func corsForm(list string) string {
	for _, expression := range strings.Split(list, ",") {
		if _, err := regexp.Compile(expression); err != nil {
			return fmt.Sprintf("has %q, which is no regular expression, and the API server would not start: "+
				"write such as //app.example.com$", expression)
		}
	}

	return ""
}

// runtimeConfig returns what is wrong with a list of API versions that are turned on and off.
func runtimeConfig(list string) string {
	for _, entry := range strings.Split(list, ",") {
		name, value, said := strings.Cut(strings.TrimSpace(entry), "=")
		on, err := strconv.ParseBool(value)
		switch {
		case said && value != "" && err != nil:
			return fmt.Sprintf("has %s with another value than true or false", name)
		case said && value != "" && !on && (name == "api/all" || name == "api/ga" || name == "v1"):
			return fmt.Sprintf("turns %s off, without which there is no cluster: take it out", name)
		}
	}

	return ""
}

// metricsURLs returns what is wrong with the addresses at which etcd shows its metrics.
func metricsURLs(list string) string {
	for _, text := range strings.Split(list, ",") {
		u, ok := scope.WebURL(text, "http", "https")
		switch {
		case !ok || u.Port() == "":
			return fmt.Sprintf("has %q, and etcd takes addresses such as http://0.0.0.0:2381", text)
		case u.Port() == "2379" || u.Port() == "2380":
			return fmt.Sprintf("has port %s, at which etcd itself listens: choose another, such as 2381", u.Port())
		}
	}

	return ""
}

// elections checks the times of leader elections, which the programs check when they start.
func (r *rules) elections() {
	for _, program := range []string{"controllerManager", "scheduler"} {
		at := "kubernetes." + program + ".extraArgs"
		flags := r.given()[at]
		times := map[string]time.Duration{
			"leader-elect-lease-duration": 15 * time.Second, "leader-elect-renew-deadline": 10 * time.Second,
			"leader-elect-retry-period": 2 * time.Second,
		}
		last := ""
		for _, flag := range scope.SortedKeys(times) {
			if d, err := time.ParseDuration(flags[flag]); err == nil {
				times[flag], last = d, flag
			}
		}
		lease, renew, retry := times["leader-elect-lease-duration"], times["leader-elect-renew-deadline"], times["leader-elect-retry-period"]
		if last != "" && (lease <= renew || renew*10 <= retry*12) {
			r.Addf(check.Key(at, last), "does not go with the others, and the program would not start: "+
				"the lease (%s) must be longer than renewing it (%s), and that longer than a retry (%s)", lease, renew, retry)
		}
	}
}
