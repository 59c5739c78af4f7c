#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a Pulumi program on PATH whose version fits the pinned one; fails where none does.
#   hack/find-pulumi.sh pulumi|pulumi-language-go PINNED_VERSION
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# Our own bin/ does not count as an installed Pulumi.
PATH=$(tr ':' '\n' <<<"$PATH" | grep -vxF "$root/bin" | paste -sd:)

found=$(command -v "$1") || exit 1
pulumi=$(command -v pulumi) || exit 1 # the language host has no version of its own: the CLI's counts
have=$("$pulumi" version 2>/dev/null) || exit 1

[[ $have == v3.* ]] || exit 1
[[ $(printf '%s\n%s\n' "$2" "$have" | sort -V | head -n 1) == "$2" ]] || exit 1
echo "$found"
