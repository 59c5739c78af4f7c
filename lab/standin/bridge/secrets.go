// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// MarkSecrets makes what patterns name secret, wherever it is in props.
func MarkSecrets(props resource.PropertyMap, patterns []string) resource.PropertyMap {
	v := resource.NewProperty(props)
	for _, p := range patterns {
		v = markSecret(v, strings.Split(strings.ReplaceAll(p, "[*]", ".*"), "."))
	}

	return v.ObjectValue()
}

func markSecret(v resource.PropertyValue, steps []string) resource.PropertyValue {
	if len(steps) == 0 {
		if v.IsSecret() || v.IsNull() || v.IsComputed() {
			return v
		}
		return resource.MakeSecret(v)
	}

	switch {
	case v.IsObject():
		key := resource.PropertyKey(steps[0])
		e, ok := v.ObjectValue()[key]
		if !ok {
			return v
		}
		c := v.ObjectValue().Copy()
		c[key] = markSecret(e, steps[1:])
		return resource.NewProperty(c)
	case v.IsArray() && steps[0] == "*":
		out := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			out[i] = markSecret(e, steps[1:])
		}
		return resource.NewProperty(out)
	}

	return v
}

// KeepSecrets makes an output secret where the input of the same name is.
func KeepSecrets(out, in resource.PropertyValue) resource.PropertyValue {
	switch {
	case out.IsSecret() || out.IsNull():
		return out
	case in.IsSecret():
		if out.IsComputed() {
			return out
		}
		return resource.MakeSecret(out)
	case out.IsObject() && in.IsObject():
		c := out.ObjectValue().Copy()
		for k, v := range in.ObjectValue() {
			if e, ok := c[k]; ok {
				c[k] = KeepSecrets(e, v)
			}
		}
		return resource.NewProperty(c)
	case out.IsArray() && in.IsArray():
		if len(out.ArrayValue()) != len(in.ArrayValue()) {
			if in.ContainsSecrets() {
				return resource.MakeSecret(out)
			}
			return out
		}
		l := make([]resource.PropertyValue, len(out.ArrayValue()))
		for i := range l {
			l[i] = KeepSecrets(out.ArrayValue()[i], in.ArrayValue()[i])
		}
		return resource.NewProperty(l)
	}

	return out
}
