// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Ptr returns a pointer to v, for the optional fields of this package.
func Ptr[T any](v T) *T { return &v }

// Value returns what p points to, and the zero value when p is nil. It is how settings are read once defaults were
// filled in ([Config.WithDefaults]): a default is written at its type alone, never where it is used.
func Value[T any](p *T) T {
	if p == nil {
		var zero T

		return zero
	}

	return *p
}

// Secret is a value that must never be printed. In a stack file it is written as `secure:`.
type Secret struct{ value string }

// NewSecret wraps a secret value.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value itself; hand it only to something that keeps it secret.
func (s Secret) Reveal() string { return s.value }

// String hides the value.
func (s Secret) String() string { return "[secret]" }

// GoString hides the value.
func (s Secret) GoString() string { return "[secret]" }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// UnmarshalText takes the value as it stands.
func (s *Secret) UnmarshalText(text []byte) error {
	s.value = string(text)

	return nil
}

// MiB is an amount of memory in mebibytes. It is written as a number of MiB (8192) or with a unit
// (8GiB, 8G, 8192MiB, 8192M); G and M are read as the binary units, as Proxmox VE does.
type MiB int

// UnmarshalText reads a number of MiB or a quantity with a unit.
func (m *MiB) UnmarshalText(text []byte) error {
	bytes, err := parseQuantity(string(text), mebi)
	if err != nil {
		return err
	}
	if bytes%mebi != 0 {
		return fmt.Errorf("%q is not a whole number of MiB", text)
	}
	*m = MiB(bytes / mebi)

	return nil
}

// GiB is a disk size in gibibytes. It is written as a number of GiB (128) or with a unit (500G,
// 512GiB, 1T, 1TiB); G and T are read as the binary units, as Proxmox VE does.
type GiB int

// UnmarshalText reads a number of GiB or a quantity with a unit.
func (g *GiB) UnmarshalText(text []byte) error {
	bytes, err := parseQuantity(string(text), gibi)
	if err != nil {
		return err
	}
	if bytes%gibi != 0 {
		return fmt.Errorf("%q is not a whole number of GiB", text)
	}
	*g = GiB(bytes / gibi)

	return nil
}

const (
	kibi = int64(1) << 10
	mebi = int64(1) << 20
	gibi = int64(1) << 30
	tebi = int64(1) << 40
)

// parseQuantity reads "8192", "500G", "512GiB"; a bare number counts in unit.
func parseQuantity(text string, unit int64) (int64, error) {
	digits := strings.TrimRight(text, "KMGTiB")
	suffix := text[len(digits):]

	factor, ok := map[string]int64{
		"": unit, "K": kibi, "KiB": kibi, "M": mebi, "MiB": mebi, "G": gibi, "GiB": gibi, "T": tebi, "TiB": tebi,
	}[suffix]
	if !ok {
		return 0, fmt.Errorf("%shas an unknown unit: write a number, or one with M, MiB, G, GiB, T or TiB", asNumber(text))
	}

	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > (int64(1)<<62)/factor {
		return 0, fmt.Errorf("%sis not a size: write a whole number, or one with M, MiB, G, GiB, T or TiB", asNumber(text))
	}

	return n * factor, nil
}

// asNumber quotes a text that was meant as a number; nothing else is printed, since it may have been meant for another setting.
func asNumber(text string) string {
	if text == "" || !strings.ContainsAny(text[:1], "0123456789-+.") || len(text) > 24 {
		return ""
	}

	return strconv.Quote(text) + " "
}

// Duration is a length of time as Go writes it: "90s", "10m", "1h30m".
type Duration time.Duration

// UnmarshalText reads a Go duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf(`%sis not a duration: write one such as "90s", "10m" or "1h30m"`, asNumber(string(text)))
	}
	*d = Duration(v)

	return nil
}

// MarshalText writes a Go duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
