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

# go build -v names each package once it is compiled, and none that is cached.
progress() {
	local n=0 last=$SECONDS line
	while IFS= read -r line; do
		if [[ $line =~ ^[A-Za-z0-9._~/-]+$ ]]; then
			n=$((n + 1))
			if ((SECONDS - last >= 15)); then
				echo "$name: $n of $total packages compiled, $((SECONDS - started)) s"
				last=$SECONDS
			fi
		else
			echo "$line"
		fi
	done
}

echo "$name: fetching its modules"
# Not go mod download: that asks for every module of the graph, most of which no package here needs.
total=$(go list -deps "$package" | wc -l)
started=$SECONDS
echo "$name: building (up to $total packages; the first build of a machine takes minutes)"
set +e
go build -v -ldflags "${STRIP--s -w}${ldflags:+ $ldflags}" -o "$out.part" "$package" 2>&1 | progress
status=${PIPESTATUS[0]}
set -e
if ((status != 0)); then
	echo "$name: the build did not succeed; the compiler's words are above" >&2
	exit "$status"
fi
mv "$out.part" "$out"
echo "$name: ready in $((SECONDS - started)) s"
