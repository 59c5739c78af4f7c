#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Says what is there, what is missing, and what to do.
set -uo pipefail

bad=0
say() { printf '%-22s %s\n' "$1" "$2"; }
need() {
	if command -v "$1" >/dev/null; then say "$1" "$($2 2>&1 | head -n 1)"; else
		say "$1" "missing: $3"
		bad=1
	fi
}

need git "git --version" "install git"
need make "make --version" "install make"
need go "go version" "install Go $(sed -n 's/^go //p' go.mod) or newer from https://go.dev/dl/"
for tool in "$@"; do
	if [[ -x $tool ]]; then say "$tool" "$(readlink -f "$tool")"; else
		say "$tool" "missing: run make tools"
		bad=1
	fi
done
say "disk free here" "$(df -h . | awk 'NR == 2 { print $4 }') (a first build takes about 8 GB with Go's caches)"
if [[ -x bin/lab ]]; then bin/lab status >/dev/null 2>&1 && say "lab" "runs (site ${LAB_SITE:-.lab})" || say "lab" "does not run; lab exec starts it"; fi
exit $bad
