// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package gitops

import (
	"fmt"
	"strings"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

// Installed says which controller is in a cluster, and how it came there.
type Installed struct {
	// How is "none", or the controller and the way that it comes, such as "flux/chart".
	How string
	// Namespace that the controller is in.
	Namespace string
}

// InstalledBy returns what the settings install.
func InstalledBy(g spec.GitOps) Installed {
	i := Installed{Namespace: spec.Value(g.Namespace)}
	provider := spec.Value(g.Provider)
	switch {
	case !hasController(g):
		i.How = None
	case provider == ArgoCD && spec.Value(g.DayZero):
		i.How = provider + "/dayZero"
	case provider == ArgoCD:
		i.How = provider + "/chart"
	default:
		i.How = provider + "/" + spec.Value(g.Method)
	}

	return i
}

// displayName returns the controller's name for messages; empty when there is none.
func (i Installed) displayName() string {
	switch {
	case i.How == None:
		return ""
	case strings.HasPrefix(i.How, ArgoCD):
		return "Argo CD"
	default:
		return "Flux"
	}
}

// atDayZero reports whether Talos installed the controller.
func (i Installed) atDayZero() bool {
	return i.How == Flux+"/"+methodInline || i.How == ArgoCD+"/dayZero"
}

// LosesOperator reports whether a change takes the Flux operator away and leaves Flux. The operator has
// to delete its instance while it still runs: nobody can delete it afterwards.
func (i Installed) LosesOperator(to Installed) bool {
	return i.How == Flux+"/"+methodOperator && to.How == Flux+"/chart"
}

const (
	errBecomesDayZero = "gitops: %s at day 0 is for a cluster that is yet to be made: Talos applies such manifests at " +
		"bootstrap. Choose gitops.method chart or operator, or gitops.dayZero false"
	errWasDayZero = "gitops: Talos installed %s at day 0 and Helm does not take over what it has not installed: keep " +
		"gitops as it was. Or set gitops.provider to none, remove %s by its own tool, and choose again"
)

// Becomes returns what a change means for what runs in the cluster, empty when that is nothing; a change
// that cannot be made is refused.
func (i Installed) Becomes(to Installed) (string, error) {
	was, is := i.displayName(), to.displayName()
	switch {
	case i.How == to.How:
		return "", nil
	case to.atDayZero():
		return "", fmt.Errorf(errBecomesDayZero, is)
	case i.atDayZero() && was == is:
		return "", fmt.Errorf(errWasDayZero, was, was)
	case was == "":
		return "", nil
	case is == "" && i.atDayZero():
		return fmt.Sprintf("gitops is turned off: %s, which Talos installed at day 0, keeps running and keeps what it "+
			"applied; only its credentials go", was), nil
	case is == "":
		return fmt.Sprintf("gitops is turned off: %s goes, and everything that it applied keeps running. Its "+
			"namespace %s and its objects stay there, without effect. A generated deploy key goes; the age key "+
			"stays in the stack and opens what was encrypted for it when gitops is turned on again", was, i.Namespace), nil
	case was == is:
		return fmt.Sprintf("gitops: %s is reinstalled by another method (%s after %s); everything that it applied "+
			"keeps running meanwhile", was, to.How, i.How), nil
	default:
		return fmt.Sprintf("gitops: %s gives way to %s: everything that %s applied keeps running, and %s takes care of "+
			"what it finds in git", was, is, was, is), nil
	}
}
