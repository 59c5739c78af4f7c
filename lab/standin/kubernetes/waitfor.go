// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// waitFor reads the annotation: "condition=Ready", "condition=Ready=False", "jsonpath={.a}",
// "jsonpath={.a}=b", or a JSON list of these, all of which must hold.
func waitFor(text string) (readiness, error) {
	parts := []string{text}
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &parts); err != nil {
			return nil, fmt.Errorf("%s: %q is no list: %w", annotationWaitFor, text, err)
		}
	}

	var all []readiness
	for _, part := range parts {
		r, err := waitForOne(part)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}

	return func(u *unstructured.Unstructured) (bool, string) {
		for _, r := range all {
			if ok, why := r(u); !ok {
				return false, why
			}
		}
		return true, ""
	}, nil
}

func waitForOne(text string) (readiness, error) {
	if rest, ok := strings.CutPrefix(text, "condition="); ok {
		kind, want, given := strings.Cut(rest, "=")
		if !given {
			want = "True"
		}
		return func(u *unstructured.Unstructured) (bool, string) {
			status, reason, message := condition(u, kind)
			if strings.EqualFold(status, want) && observedIfTold(u) {
				return true, ""
			}
			return false, fmt.Sprintf("Waiting for condition %s=%s (now %q: [%s] %s)", kind, want, status, reason, message)
		}, nil
	}

	rest, ok := strings.CutPrefix(text, "jsonpath=")
	if !ok {
		return nil, fmt.Errorf(`expected a "jsonpath=" or "condition=" prefix, got %q`, text)
	}

	expression, want, given := strings.Cut(rest, "}=")
	if given {
		expression += "}"
	}
	path := jsonpath.New("waitFor")
	if err := path.Parse(expression); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}

	return func(u *unstructured.Unstructured) (bool, string) {
		found, err := path.FindResults(u.Object)
		if err != nil || len(found) == 0 || len(found[0]) == 0 {
			return false, fmt.Sprintf("Waiting for %s to exist", expression)
		}
		var b bytes.Buffer
		if err := path.PrintResults(&b, found[0]); err != nil {
			return false, err.Error()
		}
		if given && b.String() != want {
			return false, fmt.Sprintf("Waiting for %s to be %q (now %q)", expression, want, b.String())
		}
		return true, ""
	}, nil
}

// observedIfTold: a controller that tells what generation it has seen has seen this one.
func observedIfTold(u *unstructured.Unstructured) bool {
	n, told, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return !told || n >= u.GetGeneration()
}
