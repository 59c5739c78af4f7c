// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package talos

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/talos-proxmox/talos-proxmox/internal/check"
	"github.com/talos-proxmox/talos-proxmox/internal/rules/scope"
)

// kubeletReads checks fields whose values the kubelet reads for itself.
func (r *rules) kubeletReads(at, name string, value any) {
	switch name {
	case "containerLogMaxSize":
		if _, err := resource.ParseQuantity(fmt.Sprint(value)); err != nil {
			r.Addf(at, "%q is no amount: write one such as 10Mi", fmt.Sprint(value))
		}
	case "containerLogMaxFiles":
		if files, ok := value.(int); ok && files < 2 {
			r.Addf(at, "%d is too few, and the kubelet does not start: write 2 or more", files)
		}
	case "memorySwap":
		swap, _ := value.(map[string]any)
		known := []string{"LimitedSwap", "NoSwap"}
		if behaviour := fmt.Sprint(swap["swapBehavior"]); swap["swapBehavior"] != nil && !slices.Contains(known, behaviour) {
			r.Addf(at+".swapBehavior", "%s", scope.NotOneOf(behaviour, known))
		}
	}
}

// kubeletPairs checks fields that the kubelet takes only beside others.
func (r *rules) kubeletPairs(path string, fields map[string]any, number func(name string, fallback int) int) {
	soft, _ := fields["evictionSoft"].(map[string]any)
	grace, _ := fields["evictionSoftGracePeriod"].(map[string]any)
	for _, signal := range scope.SortedKeys(soft) {
		if at := check.Key(path+".evictionSoft", signal); grace[signal] == nil && !r.Wrong(at) {
			r.Addf(at, "needs a time to wait, without which the kubelet does not start: add evictionSoftGracePeriod with %s: 1m30s", signal)
		}
	}
	for _, signal := range scope.SortedKeys(grace) {
		if soft[signal] == nil {
			r.Addf(check.Key(path+".evictionSoftGracePeriod", signal), "is for a threshold in evictionSoft, which has none: add it, or remove this")
		}
	}
	if serial, given := fields["serializeImagePulls"].(bool); number("maxParallelImagePulls", 1) > 1 && (!given || serial) {
		r.Addf(path+".maxParallelImagePulls", "is more than one while images are pulled one by one, with which the kubelet does not start: "+
			"set serializeImagePulls to false")
	}
	whole, critical := durationOf(fields["shutdownGracePeriod"]), durationOf(fields["shutdownGracePeriodCriticalPods"])
	if critical > whole {
		r.Addf(path+".shutdownGracePeriodCriticalPods", "%s is more than shutdownGracePeriod, %s, of which it is a part: lower it",
			critical, whole)
	}
}

// durationOf returns a duration that is written as text; 0 where it is none.
func durationOf(value any) time.Duration {
	text, _ := value.(string)
	d, _ := time.ParseDuration(text)

	return d
}
