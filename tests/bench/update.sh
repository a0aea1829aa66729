#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# update.sh URDMA_BENCH TABLE README: runs the benchmark and rewrites the committed table and
# README's. Exit status 0 if no row was refused.
status=0
"$1" --update "$2" || status=1
"$(dirname "$0")/readme.sh" --update "$2" "$3" || status=1
exit $status
