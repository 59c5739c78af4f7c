// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

package credential_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/talos-proxmox/talos-proxmox/internal/credential"
)

func TestIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"user:pw@docker.io":                                  "a password before a host",
		"coredns:1.12@sha256:abc":                            "",
		"https://user:pw@example.com/a":                      "a password in an URL",
		"https://:pw@example.com/a":                          "a password in an URL",
		"https://token@example.com/a":                        "credentials in an URL",
		"oci://user:pa/ss@example.com/charts":                "a password in an URL",
		"ssh://git:pw@example.com/a.git":                     "a password in an URL",
		"talos.config=https://u:p@example.com/c":             "a password in an URL",
		"https://example.com/a?access_token=abc":             "the value of access_token",
		"https://example.com/a?x=1&sig=abc%3D":               "the value of sig",
		"wifi.password=hunter2":                              "the value of wifi.password",
		"--auth-token=abc":                                   "the value of auth-token",
		"root@pam!ci=12345678-1234-1234-1234-123456789012":   "a Proxmox API token",
		"ghp_abcdefghijklmnopqrstuvwxyz0123456789":           "a GitHub token",
		"glpat-abcdefghijklmnopqrst":                         "a GitLab token",
		"Bearer abcdefghijkl":                                "an authorization header",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nabc":           "a private key",
		"AGE-SECRET-KEY-1QQQQ":                               "an age identity",
		"https://example.com:8443/a@b":                       "",
		"https://example.com/pkg@v1.2.3":                     "",
		"https://example.com:6443":                           "",
		"ssh://git@example.com:2222/a.git":                   "",
		"git@github.com:org/repo":                            "",
		"root@pam":                                           "",
		"console=ttyS0,115200":                               "",
		"net.ifnames=0":                                      "",
		"password=$(cat /run/secret)":                        "",
		"service-account-signing-key-file=/etc/kubernetes/x": "",
		"https://[fd00::1]:6443":                             "",
		"secret/{name}":                                      "",
		"tokenless=yes":                                      "",
	} {
		assert.Equal(t, want, credential.In(text), text)
	}
}

func TestSensitive(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"password": true, "adminPassword": true, "DB_PASSWORD": true, "token": true, "authToken": true, "privateKey": true, "client-secret": true,
		"secretName": false, "existingSecret": false, "tokenTTL": false, "passwordKey": false, "key": false, "keyFile": false, "signer": false,
		"automountServiceAccountToken": false,
	} {
		assert.Equal(t, want, credential.Sensitive(name), name)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`"https://user:pw@example.com/a" is no URL`:                                             `"https://…@example.com/a" is no URL`,
		`"https//user:pw@example.com" is no URL`:                                                `"…@example.com" is no URL`,
		`"https:/user:p@w@example.com" is no URL`:                                               `"https:/…@example.com" is no URL`,
		`"user:pw@example.com/a b" is no URL`:                                                   `"…@example.com/a b" is no URL`,
		`"https://u:p/w@example.com" is no URL`:                                                 `"https://…@example.com" is no URL`,
		`"https://token@example.com" is no URL`:                                                 `"https://…@example.com" is no URL`,
		`"ssh://git@example.com/a" names nothing`:                                               `"ssh://git@example.com/a" names nothing`,
		`"git@example.com:a/b" is the short form`:                                               `"git@example.com:a/b" is the short form`,
		`"https://e.com/a?token=x&b=c" is no URL`:                                               `"https://e.com/a?token=…&b=…" is no URL`,
		`"root@pam!ci=12345678-1234-1234-1234-123456789012" is no user`:                         `"…" is no user`,
		`"Zm9vYmFyMTIzNDU2Nzg5" is no name`:                                                     `"…" is no name`,
		`"0123456789abcdef0123456789abcdef" is no name`:                                         `"…" is no name`,
		`"12345678-1234-1234-1234-123456789012" is no token`:                                    `"…" is no token`,
		`"x86-64-v2-AES" is no CPU type`:                                                        `"x86-64-v2-AES" is no CPU type`,
		`"nvidia-open-gpu-kernel-modules-lts" is not there`:                                     `"nvidia-open-gpu-kernel-modules-lts" is not there`,
		`"VersionTLS99" is not one of VersionTLS10, VersionTLS12; did you mean "VersionTLS10"?`: `"…" is not one of VersionTLS10, VersionTLS12; did you mean "VersionTLS10"?`,
		`10.0.0.1 is outside 10.0.0.0/24`:                                                       `10.0.0.1 is outside 10.0.0.0/24`,
		`write user@realm!name=uuid`:                                                            `write user@realm!name=uuid`,
	} {
		assert.Equal(t, want, credential.Redact(message), message)
	}
}
