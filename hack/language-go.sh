#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pulumi's Go host as the lab builds it, bin/pulumi-language-go. The host's module is older than the CLI: it takes the
# build target from its command line, not from runtime.options in Pulumi.yaml. With a target that is up to date Go does
# not link the program again, so that a command of Pulumi's takes seconds less.
exec "$(dirname "$0")/libexec/pulumi-language-go" -buildTarget="$PWD/bin/program" "$@"
