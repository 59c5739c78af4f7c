#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a stack in the lab's state where there is none yet.
set -euo pipefail

if ! bin/lab exec -- pulumi stack ls --json | grep -q "\"name\": \"\(organization/[^\"]*/\)\?$1\""; then
	bin/lab exec -- pulumi stack init "$1"
fi
