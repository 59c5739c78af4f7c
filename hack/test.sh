#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test: the product's units, the lab's, then the real engine in the lab. A part that fails does not keep the
# others from running: all of them run, each is reported at the end, and the exit code is 1 when any failed.
set -uo pipefail

failed=()
passed=()
part() {
	local name=$1 started=$SECONDS
	shift
	echo "== $name"
	if "$@"; then passed+=("$name ($((SECONDS - started)) s)"); else failed+=("$name ($((SECONDS - started)) s)"); fi
}

units() { go test $(go list ./... | grep -v -e '/tests$' -e '/tests/chaos$'); }
goldens() {
	local status=0
	for module in tests/goldens/*/; do (cd "$module" && go test ./...) || status=1; done
	return $status
}
lab() { (cd lab && go test ./...); }
release() { (cd tools/release && go test ./...); }
# One package at a time: Go shows the tests of several only when all are done. The tests wait more than they compute: two at a
# time, as many as a small machine has cores, leave it idle.
engine() { go test -count=1 -timeout 60m -parallel 4 -v ./tests; }
chaos() { go test -count=1 -timeout 30m -v ./tests/chaos; }

part "format, vet and lint" hack/lint.sh
part "units of the program and the components" units
part "recorded configurations under older Talos machinery" goldens
part "the lab" lab
part "bills of materials" release
part "the real engine in the lab" engine
part "chaos, a few seeds" chaos

echo
for name in "${passed[@]}"; do echo "ok    $name"; done
for name in "${failed[@]}"; do echo "FAIL  $name"; done
((${#failed[@]} == 0))
