// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package bridge

import (
	"encoding/json"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// DecodeConfig undoes the encoding in which an engine passes configuration: everything that is not a
// string arrives as JSON text.
func DecodeConfig(t *Type, props resource.PropertyMap) resource.PropertyMap {
	out := resource.PropertyMap{}
	for k, v := range props {
		if f, ok := t.Field(string(k)); ok && f.Type.Kind != String {
			v = decodeValue(v)
		}
		out[k] = v
	}

	return out
}

func decodeValue(v resource.PropertyValue) resource.PropertyValue {
	if v.IsSecret() {
		return resource.MakeSecret(decodeValue(v.SecretValue().Element))
	}
	if !v.IsString() {
		return v
	}

	var plain any
	if err := json.Unmarshal([]byte(v.StringValue()), &plain); err != nil {
		return v // the type check says what is wrong with it
	}

	return reviveSecrets(resource.NewPropertyValue(plain))
}

// secretSig marks a secret inside JSON text.
const (
	sigKey    = resource.PropertyKey("4dabf18193072939515e22adb298388d")
	secretSig = "1b47061264138c4ac30d75fd1eb44270"
)

func reviveSecrets(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsObject():
		m := v.ObjectValue()
		if s, ok := m[sigKey]; ok && s.IsString() && s.StringValue() == secretSig {
			return resource.MakeSecret(reviveSecrets(m["value"]))
		}
		c := resource.PropertyMap{}
		for k, e := range m {
			c[k] = reviveSecrets(e)
		}
		return resource.NewProperty(c)
	case v.IsArray():
		l := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			l[i] = reviveSecrets(e)
		}
		return resource.NewProperty(l)
	}

	return v
}

// EncodeConfig keeps the form in which the state holds configuration: JSON text for what is no
// string. A secret anywhere in a value makes the whole value secret.
func EncodeConfig(props resource.PropertyMap) resource.PropertyMap {
	out := resource.PropertyMap{}
	for k, v := range props {
		out[k] = encodeValue(v)
	}

	return out
}

func encodeValue(v resource.PropertyValue) resource.PropertyValue {
	bare := open(v)
	if bare.IsString() || bare.IsComputed() || bare.IsNull() || v.ContainsUnknowns() {
		return v
	}

	text, err := json.Marshal(plain(v))
	if err != nil {
		return v
	}

	encoded := resource.NewProperty(string(text))
	if v.ContainsSecrets() {
		return resource.MakeSecret(encoded)
	}

	return encoded
}
