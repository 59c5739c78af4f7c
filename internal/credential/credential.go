// SPDX-License-Identifier: Apache-2.0
// Copyright the talos-proxmox authors.

// Package credential recognizes credentials in plain text, so that they are refused where they would end up
// in the clear, and never printed.
package credential

import (
	"regexp"
	"slices"
	"strings"
)

// tokens are the forms of credentials that tell themselves.
var tokens = []struct {
	what string
	form *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)},
	{"an age identity", regexp.MustCompile(`(?i)AGE-SECRET-KEY-[0-9A-Z]+`)},
	{"a Proxmox API token", regexp.MustCompile(`[^\s"'@/]+@[A-Za-z0-9_.-]+![A-Za-z0-9_.-]+=\S+`)},
	{"a GitHub token", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})`)},
	{"a GitLab token", regexp.MustCompile(`\bgl(pat|dt|ptt|rt|cbt|soat)-[A-Za-z0-9_-]{12,}`)},
	{"a Docker token", regexp.MustCompile(`\bdckr_[a-z]+_[A-Za-z0-9_-]{16,}`)},
	{"a Vault token", regexp.MustCompile(`\bhv[sbr]\.[A-Za-z0-9_-]{16,}`)},
	{"an AWS access key", regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"a Slack token", regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`)},
	{"a Tailscale key", regexp.MustCompile(`\btskey-[a-z]+-[A-Za-z0-9-]{8,}`)},
	{"a JSON web token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`)},
	{"a secret of QEMU", regexp.MustCompile(`\bsecret,\S*\bdata=\S+`)},
	{"an authorization header", regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/._~-]{8,}={0,2}`)},
}

// sensitive are names of parameters, arguments and variables whose value is a credential.
var sensitive = regexp.MustCompile(`(?i)^(.*[_.-])?(pass(word|wd|phrase)?|pwd|(access|auth|api|bearer|id|job|private|refresh|session)` +
	`[_.-]?token|` +
	`token|secret|client[_.-]?secret|api[_.-]?key|access[_.-]?key|secret[_.-]?(access[_.-]?)?key|auth[_.-]?key|` +
	`private[_.-]?key|psk|sig(nature)?|x-amz-signature|credentials?)$`)

// Sensitive reports whether a name says that its value is a credential: "password", "DB_PASSWORD", "authKey".
func Sensitive(name string) bool {
	name = snake.ReplaceAllString(name[strings.LastIndexByte(name, '/')+1:], "${1}_${2}")

	return sensitive.MatchString(name) && !pointing.MatchString(name)
}

// pointing are names of settings that only say where a credential is, or whether there is one.
var pointing = regexp.MustCompile(`(?i)^(existing|automount|use|enable|image[_.-]?pull)[_.-]?`)

// snake divides the words of a name in camel case.
var snake = regexp.MustCompile(`([a-z0-9])([A-Z])`)

var (
	// urlUser is what stands before the host of an URL.
	urlUser = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*):/{1,3}([^/?#\s@]*)@`)
	// assignment is a name with its value, as in arguments of the kernel, of programs and of URLs.
	assignment = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)(?:=| = )([^\s&;,"']+)`)
)

// In returns what kind of credential a text holds unencrypted, or "" when it holds none: in an URL, as the value
// of a name, or by a form that only credentials have.
func In(text string) string {
	for _, t := range tokens {
		if t.form.MatchString(text) {
			return t.what
		}
	}
	for _, m := range urlUser.FindAllStringSubmatch(text, -1) {
		user, _, withPassword := strings.Cut(m[2], ":")
		if withPassword {
			return "a password in an URL"
		}
		if user != "" && m[1] != "ssh" && m[1] != "git+ssh" {
			return "credentials in an URL"
		}
	}
	for _, m := range mangledUser.FindAllStringSubmatch(text, -1) {
		if !portAndPath.MatchString(m[1]) {
			return "a password in an URL"
		}
	}
	if bareUser.MatchString(text) && !digest.MatchString(text) {
		return "a password before a host"
	}
	for _, m := range assignment.FindAllStringSubmatch(text, -1) {
		if Sensitive(m[1]) && !Refers(m[2]) {
			return "the value of " + m[1]
		}
	}

	return ""
}

var (
	// mangledUser is an URL whose password has characters that end the part before the host.
	mangledUser = regexp.MustCompile(`://[^/\s@:]+:([^@\n"]+)@[A-Za-z0-9\[]`)
	// bareUser is user and password before a host, without a scheme; digest is an image, which looks alike.
	bareUser = regexp.MustCompile(`^[^\s/@:]+:[^\s/@]+@[A-Za-z0-9.\[-]+(:[0-9]+)?(/|$)`)
	digest   = regexp.MustCompile(`@sha(256|512):`)
	// portAndPath is what looks like a password where an URL has an at sign in its path.
	portAndPath = regexp.MustCompile(`^[0-9]{1,5}([/\s]|$)`)
)

// Refers reports whether a value only names where the credential is: a variable, a template, a file.
func Refers(value string) bool {
	return value == "" || strings.ContainsAny(value[:1], "$%{</") || strings.HasPrefix(value, "file:") || strings.EqualFold(value, "true") ||
		strings.EqualFold(value, "false")
}

// Hidden is printed in place of a credential.
const Hidden = "…"

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// before is everything before the host, in an URL however malformed.
	before = regexp.MustCompile(`(^|[\s"'(=])[^\s"'(]*:[^\s"']*@`)
	scheme = regexp.MustCompile(`^[\s"'(=]?([A-Za-z][A-Za-z0-9+.-]*:/+|//)?`)
	query  = regexp.MustCompile(`([?&][^=\s"&]*=)[^\s"&]+`)
	uuid   = regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// aUser is a user alone, as in ssh://git@host, which is no credential.
	aUser = regexp.MustCompile(`(^|[\s"'(=])ssh://[^\s:@/]+@$`)
)

// Redact returns a message without what could be a credential in it. A suggestion is one of the words that the message
// itself lists, and stays.
func Redact(message string) string {
	var out strings.Builder
	listed := strings.FieldsFunc(quoted.ReplaceAllString(message, ""), func(r rune) bool { return r == ' ' || r == ',' || r == ';' })
	at := 0
	for _, q := range quoted.FindAllStringIndex(message, -1) {
		out.WriteString(redactURL(message[at:q[0]]))
		value := message[q[0]+1 : q[1]-1]
		if !slices.Contains(listed, value) {
			value = RedactValue(value)
		}
		out.WriteString(`"` + value + `"`)
		at = q[1]
	}
	out.WriteString(redactURL(message[at:]))

	return out.String()
}

// RedactValue redacts a value as the user wrote it.
func RedactValue(value string) string {
	if couldBe(value) || mixed(value) {
		return Hidden
	}
	schema := schemePart.FindString(value)
	if withUser.MatchString(value[len(schema):]) {
		return schema + Hidden + value[strings.LastIndexByte(value, '@'):]
	}
	for _, t := range tokens {
		value = t.form.ReplaceAllString(value, Hidden)
	}

	return assignment.ReplaceAllStringFunc(redactURL(value), func(m string) string {
		name, _, _ := strings.Cut(m, "=")
		if Sensitive(name) {
			return name + "=" + Hidden
		}

		return m
	})
}

// redactURL takes what stands before a host, and the values of a query, out of a text.
func redactURL(text string) string {
	text = before.ReplaceAllStringFunc(text, func(m string) string {
		if aUser.MatchString(m) {
			return m
		}

		return scheme.FindString(m) + Hidden + "@"
	})

	return query.ReplaceAllString(text, "$1"+Hidden)
}

// withUser is an URL or a host with user and password before it, however malformed.
var (
	withUser   = regexp.MustCompile(`(?s)^[^/?#@:]*:.*@`)
	schemePart = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/+`)
)

// mixed reports whether a word looks as people make passwords: capitals, small letters and figures among each other, or signs too.
func mixed(word string) bool {
	if len(word) < 8 || strings.ContainsAny(word, " /\\:.-_,@\t\n") {
		return false
	}
	upper, lower, digit, sign := countKinds(word)

	return upper > 0 && lower > 0 && (digit > 1 || digit > 0 && sign > 0)
}

// countKinds counts the capitals, small letters, figures and other signs of a text.
func countKinds(text string) (upper, lower, digit, other int) {
	for _, c := range text {
		switch {
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		case c >= '0' && c <= '9':
			digit++
		default:
			other++
		}
	}

	return upper, lower, digit, other
}

// couldBe reports whether a text looks as only a generated credential does: long, without words.
func couldBe(text string) bool {
	if uuid.MatchString(text) && len(text) <= 40 {
		return true
	}
	if len(text) < 16 || strings.ContainsAny(text, " /\\:\t\n") {
		return false
	}
	upper, lower, digit, other := countKinds(text)
	kinds := 0
	for _, n := range []int{upper, lower, digit} {
		if n > 0 {
			kinds++
		}
	}
	hexadecimal := strings.Trim(text, "0123456789abcdefABCDEF") == "" && digit > 0 && len(text) >= 32

	return hexadecimal || kinds == 3 && digit >= 2 && other*4 < len(text)
}
