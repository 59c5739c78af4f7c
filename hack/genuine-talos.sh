#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Says what is missing before genuine Talos is built and run here.
set -euo pipefail

missing=()
[[ $(uname -s) == Linux ]] || missing+=("Linux: the nodes run in its namespaces")
((EUID == 0)) || missing+=("root: namespaces, mounts and control groups need it (sudo make genuine-talos)")
command -v ip >/dev/null || missing+=("ip, of iproute2: the nodes' network is made with it")
[[ -d /sys/fs/cgroup ]] || missing+=("/sys/fs/cgroup: the nodes need control groups")
if [[ ! -x bin/genuine-talos/runc ]]; then
	command -v gcc >/dev/null || missing+=("gcc: a part of runc is written in C")
	echo 'int main(void){return 0;}' | gcc -static -x c -o /dev/null - 2>/dev/null ||
		missing+=("a static C library (libc6-dev): runc is linked with it")
fi
if ((${#missing[@]})); then
	echo "genuine Talos cannot run here. What is missing:" >&2
	printf '  %s\n' "${missing[@]}" >&2
	exit 1
fi
