#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_perfetto.sh URDMA_EVENTS MAKE_EVENTS: reads the trace with Perfetto's own schema.
set -eu

top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
prog=test_perfetto
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

[ -e "$perfetto_dir/done" ] || die "Perfetto's schema is missing: tools/setup.sh full fetches it"
"$2" "$dir/events"
"$1" --perfetto "$dir/trace" --json "$dir/json" --csv "$dir/csv" "$dir/events"
PYTHONPATH=$perfetto_dir/python /usr/bin/python3 "$top/tests/events/check_perfetto.py" "$dir/trace" "$dir/json" "$dir/csv"
