#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test: the product's units, the lab's, then the real engine in the lab.
set -euo pipefail

hack/lint.sh
echo "== units of the program and the components"
go test $(go list ./... | grep -v '/tests$')
echo "== recorded configurations under older Talos machinery"
for module in tests/goldens/*/; do
  (cd "$module" && go test ./...)
done
echo "== the lab"
(cd lab && go test ./...)
echo "== the real engine in the lab"
go test -count=1 -timeout 40m -v ./tests/...
