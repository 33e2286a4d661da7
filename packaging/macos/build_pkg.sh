#!/bin/sh
# Builds dist/venue-agent-VERSION.pkg on a Mac. Usage: build_pkg.sh ONEDIR VERSION OUTPUT_DIR
set -eu

onedir=$1 version=$2 output=$3
[ "$(uname -s)" = Darwin ] || { echo "The macOS package can be built only on a Mac." >&2; exit 1; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# The program is not installed in /usr/local, because root runs it. On Intel Macs, Homebrew makes a
# user the owner of /usr/local.
mkdir -p "$root/opt" "$root/usr/local/bin" "$output"
cp -R "$onedir" "$root/opt/venue-agent"
ln -s /opt/venue-agent/venue-agent "$root/usr/local/bin/venue-agent"
# The package does not install the LaunchDaemon. The user installs it with
# `venue-agent service install`, which has options.
pkgbuild --root "$root" --identifier com.venue-agent --version "$version" \
    --install-location / --ownership recommended "$output/venue-agent-$version.pkg"
