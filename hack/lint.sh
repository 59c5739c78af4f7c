#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Format and vet of every module of the repository.
set -euo pipefail

unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [[ -n $unformatted ]]; then
	echo "not gofmt'ed (run make fmt):" >&2
	echo "$unformatted" >&2
	exit 1
fi
for module in . lab tests/goldens/*/; do (cd "$module" && go vet ./...); done
