// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package manifests

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/talos-proxmox/talos-proxmox/internal/machineconfig"
)

// keepAnnotation is how charts say that an object outlives them.
const keepAnnotation = "helm.sh/resource-policy"

// Object describes one Kubernetes object of the day-0 manifests.
type Object struct {
	// ID is apiVersion, kind, namespace and name: "apps/v1/DaemonSet/kube-system/cilium". The namespace
	// is empty where the manifest names none.
	ID string
	// JSON is the object, in canonical form; it may hold secrets.
	JSON []byte
	// Kept objects stay when their manifest goes: their chart says so.
	Kept bool
}

// Digest returns a fingerprint of the object. Nobody without the key can tell from it what the object holds.
func (o Object) Digest(key []byte) string {
	sum := hmac.New(sha256.New, key)
	sum.Write(o.JSON)

	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Objects returns the objects in the manifests, in their order. Where one occurs twice, the last counts.
// Errors name the manifest and never quote it.
func Objects(list []machineconfig.Manifest) ([]Object, error) {
	var all []Object
	at := map[string]int{}
	for _, m := range list {
		found, err := objectsIn(m.Contents)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", m.Name, err)
		}
		for _, o := range found {
			if i, twice := at[o.ID]; twice {
				all[i] = o

				continue
			}
			at[o.ID] = len(all)
			all = append(all, o)
		}
	}

	return all, nil
}

// objectsIn reads YAML documents as Kubernetes does, lists taken apart.
func objectsIn(text string) ([]Object, error) {
	var all []Object
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading it: %w", err)
		}
		content, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, errors.New("it is not YAML: " + withoutValues(err.Error()))
		}
		if bytes.Equal(content, []byte("null")) {
			continue
		}
		found, err := identified(content)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

// identified returns the object in JSON, or the objects when it is a list.
func identified(content []byte) ([]Object, error) {
	var o struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Namespace   string            `json:"namespace"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(content, &o); err != nil {
		return nil, errors.New("it holds something that is no object")
	}
	if o.Kind == "List" && o.APIVersion == "v1" {
		var all []Object
		for _, item := range o.Items {
			found, err := identified(item)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}

		return all, nil
	}
	if o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "" {
		return nil, errors.New("an object has no apiVersion, kind or name")
	}

	return []Object{{
		ID:   strings.Join([]string{o.APIVersion, o.Kind, o.Metadata.Namespace, o.Metadata.Name}, "/"),
		JSON: content,
		Kept: o.Metadata.Annotations[keepAnnotation] == "keep",
	}}, nil
}
