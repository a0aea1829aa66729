#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh PACKAGES BUILD DIRECTORIES NAME [launcher options] -- COMMAND: as in-guest.sh -g, in guests that have these Debian
# packages, too. The DIRECTORIES of tests/guest are built with the packages in BUILD, and the guests see what comes of it as
# /share.
set -eu
top=$(CDPATH='' cd "$(dirname "$0")/../../.." && pwd)
packages=$1 build=$2 directories=$3 name=$4
shift 4
"$top/tools/setup.sh" --packages "$packages" test
share=$top/build/guest/$name
for directory in $directories; do
	"$top/urdma" build --packages "$build" --out "$share" "$top/tests/guest/$directory"
done
[ -z "$directories" ] || set -- --share "$share" "$@"
exec "$top/tests/guest/host/in-guest.sh" -g "$name" --packages "$packages" "$@"
