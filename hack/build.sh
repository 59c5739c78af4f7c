#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds one tool from its pinned module and says how far it is.
#   hack/build.sh NAME MODULE_DIR OUTPUT PACKAGE [LDFLAGS]
# Symbols are left out of the result, unless STRIP is set and empty.
set -euo pipefail

name=$1 dir=$2 out=$3 package=$4 ldflags=${5:-}
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
cd "$dir"

# The compiler collects its garbage less often: a tenth less time for some more memory, and the same result.
export GOGC=${GOGC:-800} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}

# One line that is written over on a terminal; elsewhere a line every so often.
shown=0
show() {
	if [[ -t 1 ]]; then
		printf '\r\033[K%s' "$*"
		shown=1
	elif ((SECONDS - last >= 15)); then
		echo "$*"
		last=$SECONDS
	fi
}
# What stays: after a line that is written over, on a line of its own.
keep() {
	if ((shown)); then printf '\r\033[K'; fi
	shown=0
	echo "$*"
}

# go names each module that it fetches, which may be hundreds.
fetching() {
	local n=0 line last=$SECONDS
	while IFS= read -r line; do
		case $line in
		"go: downloading "*)
			n=$((n + 1))
			show "$name: fetching its modules, $n so far"
			;;
		*) keep "$line" ;;
		esac
	done
	if ((shown)); then printf '\r\033[K'; fi
}

# go build -v names each package once it is compiled, and none that is cached.
compiling() {
	local n=0 line last=$SECONDS
	while IFS= read -r line; do
		if [[ $line =~ ^[A-Za-z0-9._~/-]+$ ]]; then
			n=$((n + 1))
			show "$name: $n of at most $total packages compiled, $((SECONDS - started)) s"
		elif [[ $line != "go: downloading "* ]]; then
			keep "$line"
		fi
	done
	if ((shown)); then printf '\r\033[K'; fi
}

# Not go mod download: that asks for every module of the graph, most of which no package here needs.
exec 3>&1
total=$(go list -deps "$package" 2> >(fetching >&3) | wc -l)
started=$SECONDS
set +e
go build -v -ldflags "${STRIP--s -w}${ldflags:+ $ldflags}" -o "$out.part" "$package" 2>&1 | compiling
status=${PIPESTATUS[0]}
set -e
if ((status != 0)); then
	echo "$name: the build did not succeed; the compiler's words are above" >&2
	exit "$status"
fi
mv "$out.part" "$out"
echo "$name: built in $((SECONDS - started)) s"
