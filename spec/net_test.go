// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/spec"
)

func TestAddressesAreReadInOnePlace(t *testing.T) {
	t.Parallel()
	for text, problem := range map[string]string{
		"10.0.0.11": "", "2001:db8::1": "",
		"10.0.0.256": `"10.0.0.256" is not an IP address`,
		"fe80::1%5":  `"fe80::1%5" is not an IP address`,
		"":           `"" is not an IP address`,
	} {
		_, err := spec.ParseAddr(text)
		assertProblem(t, problem, err)
	}
	for text, problem := range map[string]string{
		"10.0.0.0/24": "", "2001:db8::/64": "",
		"10.0.0.0":    `"10.0.0.0" is not a network such as 10.0.0.0/24`,
		"10.0.0.0/33": `"10.0.0.0/33" is not a network such as 10.0.0.0/24`,
	} {
		_, err := spec.ParseNetwork(text)
		assertProblem(t, problem, err)
	}
	for given, problem := range map[[2]string]string{
		{"10.0.0.11/24", ""}: "", {"10.0.0.11", "10.0.0.0/24"}: "",
		{"10.0.0.11", ""}:              `"10.0.0.11" has no prefix length: write 10.0.0.11/24, or give the network's subnet`,
		{"10.0.0.11", "2001:db8::/64"}: `"10.0.0.11" is of another IP family than the subnet 2001:db8::/64`,
		{"10.0.0.11", "lan"}:           `"10.0.0.11" has no prefix length, and the subnet "lan" is no network`,
		{"10.0.0.11/99", ""}:           `"10.0.0.11/99" is not an address with a prefix length such as 10.0.0.11/24`,
	} {
		_, err := spec.ParsePrefix(given[0], given[1])
		assertProblem(t, problem, err)
	}
}

func assertProblem(t *testing.T, problem string, err error) {
	t.Helper()
	if problem == "" {
		assert.NoError(t, err)

		return
	}
	assert.EqualError(t, err, problem)
}
