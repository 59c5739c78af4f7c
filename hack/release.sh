#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what a release has: the program, tpx and the plugin of the policies for every system, their bills of materials
# (CycloneDX), checksums, and the notes from CHANGELOG.md.
#   hack/release.sh VERSION DIRECTORY
# SYSTEMS names the systems, "linux/amd64 darwin/arm64".
set -euo pipefail

version=$1 out=$2
systems=${SYSTEMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "release: $version is no version such as v1.2.3" >&2; exit 1; }

# The notes are the part of the changelog under the version's heading.
mkdir -p "$out"
awk -v heading="## ${version#v}" '
	index($0, heading) == 1 && (length($0) == length(heading) || substr($0, length(heading) + 1, 1) == " ") { found = 1; next }
	found && /^## / { exit }
	found { print }' CHANGELOG.md >"$out/NOTES.md"
if ! grep -q '[^[:space:]]' "$out/NOTES.md"; then
	echo "release: CHANGELOG.md has nothing under \"## ${version#v}\"" >&2
	exit 1
fi

for system in $systems; do
	os=${system%/*} arch=${system#*/} suffix=""
	[[ $os == windows ]] && suffix=.exe
	for name in talos-proxmox tpx pulumi-analyzer-policy-talos-proxmox; do
		package=. && [[ $name == talos-proxmox ]] || package=./cmd/$name
		dir=$(mktemp -d)
		CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags "-s -w -buildid=" -o "$dir/$name$suffix" "$package"
		cp LICENSE "$dir/"
		# What is in it, as Go itself wrote it into the binary.
		(cd tools/release && go run ./sbom "$dir/$name$suffix" "$name" "$version") >"$out/$name-$version-$os-$arch.cdx.json"
		tar -C "$dir" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - . | gzip -n >"$out/$name-$version-$os-$arch.tar.gz"
		rm -rf "$dir"
		echo "release: $name $os/$arch"
	done
done
(cd "$out" && sha256sum -- *.tar.gz >SHA256SUMS)
