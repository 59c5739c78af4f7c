#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Format, vet and golangci-lint (.golangci.yml of the module) of every module of the repository, and actionlint of workflows. All of them run; any of them may fail it.
set -uo pipefail
root=$PWD status=0

unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [[ -n $unformatted ]]; then
	echo "not gofmt'ed (run make fmt):" >&2
	echo "$unformatted" >&2
	status=1
fi
for module in . lab tools/release tools/talos tests/goldens/*/ examples/*/; do
	[[ -f $module/go.mod ]] || continue
	(cd "$module" && go vet ./...) || status=1
done
for module in . lab; do
	(cd "$module" && "$root/bin/golangci-lint" run ./...) || status=1
done
workflows=("$root"/.github/workflows/*.yaml "$root"/template/.github/workflows/*.yaml "$root"/examples/pull-requests/{preview,gitea}.yaml)
# Gitea names actions by their URL, which GitHub does not know.
(cd tools/release && go tool actionlint -ignore 'specifying action "https://' "${workflows[@]}") || status=1
exit $status
