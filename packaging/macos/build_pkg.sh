#!/bin/sh
# Builds dist/venue-agent-VERSION.pkg on a Mac. Usage: build_pkg.sh ONEDIR VERSION OUTPUT_DIR
set -eu

onedir=$1 version=$2 output=$3
[ "$(uname -s)" = Darwin ] || { echo "macOS packages are built on a Mac" >&2; exit 1; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# Not into /usr/local: Homebrew gives that of an Intel Mac to a person, and root runs this.
mkdir -p "$root/opt" "$root/usr/local/bin" "$output"
cp -R "$onedir" "$root/opt/venue-agent"
ln -s /opt/venue-agent/venue-agent "$root/usr/local/bin/venue-agent"
# The service itself is installed by `venue-agent service install`, which knows the address.
pkgbuild --root "$root" --identifier com.venue-agent --version "$version" \
    --install-location / --ownership recommended "$output/venue-agent-$version.pkg"
