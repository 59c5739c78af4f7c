// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package pve

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Properties holds a property string, "local-lvm:vm-1-disk-0,size=10G": pairs with one default key that may
// be left out.
type Properties struct {
	first string // the default key
	keys  []string
	Value map[string]string
}

func ParseProperties(first, s string) Properties {
	p := Properties{first: first, Value: map[string]string{}}
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		k, v, ok := strings.Cut(part, "=")
		if !ok {
			k, v = first, part
		}
		p.Set(k, v)
	}

	return p
}

func (p *Properties) Set(key, value string) {
	if _, ok := p.Value[key]; !ok {
		p.keys = append(p.keys, key)
	}
	p.Value[key] = value
}

func (p *Properties) Del(key string) {
	delete(p.Value, key)
	p.keys = slices.DeleteFunc(p.keys, func(k string) bool { return k == key })
}

func (p Properties) Get(key string) string { return p.Value[key] }

// On reports whether a boolean property is on.
func (p Properties) On(key string) bool { return IsTrue(p.Value[key]) }

// String prints the default key's value first and the others sorted, as Proxmox VE stores them.
func (p Properties) String() string {
	var parts []string
	if v, ok := p.Value[p.first]; ok {
		parts = append(parts, v)
	}

	keys := slices.Clone(p.keys)
	slices.Sort(keys)
	for _, k := range keys {
		if k != p.first {
			parts = append(parts, k+"="+p.Value[k])
		}
	}

	return strings.Join(parts, ",")
}

func IsTrue(s string) bool { return s == "1" || s == "on" || s == "yes" || s == "true" }

// ParseSize reads "10G", "4M", "528K" or bytes.
func ParseSize(s string) (int64, error) {
	unit := int64(1)
	number := s
	if s != "" {
		switch s[len(s)-1] {
		case 'K', 'k':
			unit = 1 << 10
		case 'M', 'm':
			unit = 1 << 20
		case 'G', 'g':
			unit = 1 << 30
		case 'T', 't':
			unit = 1 << 40
		}
		if unit > 1 {
			number = s[:len(s)-1]
		}
	}

	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("unable to parse size %q", s)
	}

	return int64(f * float64(unit)), nil
}

// FormatSize prints the largest unit that divides n.
func FormatSize(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 40, "T"}, {1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}

	return strconv.FormatInt(n, 10)
}
