#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh PACKAGES BUILD NAME [launcher options] -- COMMAND: as in-guest.sh -g, in guests that have these Debian packages,
# too. With packages in BUILD, the directory tests/guest/NAME is built with them for the guests, which see it as /share.
set -eu
top=$(cd "$(dirname "$0")/../../.." && pwd)
packages=$1 build=$2 name=$3
shift 3
"$top/tools/setup.sh" --packages "$packages" test
if [ "$build" ]; then
	share=$top/build/guest/$name
	"$top/urdma" build --packages "$build" --out "$share" "$top/tests/guest/$name"
	set -- --share "$share" "$@"
fi
exec "$top/tests/guest/host/in-guest.sh" -g "$name" --packages "$packages" "$@"
