#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Keeps what comes on standard input as the document $1 in the 1Password vault $2, for output.store.command.
# The op CLI must be signed in: OP_SERVICE_ACCOUNT_TOKEN, or the app.
set -eu

if op document get "$1" --vault "$2" </dev/null >/dev/null 2>&1; then
	op document edit "$1" - --vault "$2" >/dev/null
else
	op document create - --title "$1" --file-name "$1" --vault "$2" >/dev/null
fi
