#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/provider/rdma-core.sh DIR: unpacks into DIR the parts of rdma-core that the tests compile,
# in the version that builds the provider for the guest. Its headers are laid out as in its own
# build:
#
#   DIR/include, DIR/include/uapi   what "#include <infiniband/driver.h>" and the like find
#   DIR/include/contract            the headers that the provider shares with the kernel driver
#   DIR/providers/erdma, DIR/util   sources
set -euo pipefail

top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
prog=rdma-core
# shellcheck source=tools/lib.sh
. "$top/tools/lib.sh"

out=$1
[ -e "$dev_dir/done" ] || die "the Debian 13 tree is not there: run tools/setup.sh first"

rm -rf "$out"
mkdir -p "$out/include/kernel-abi" "$out/include/uapi" "$out/include/contract"
# With the present time, or make would take the unpacked files for older than this script.
tar -xzf "$dev_dir/rdma-core.tar.gz" -C "$out" --strip-components=1 --touch \
	"rdma-core-$rdma_core_version"/{buildlib/make_abi_structs.py,ccan,kernel-headers/rdma,libibverbs,providers/erdma,util}
ln -s ../libibverbs "$out/include/infiniband"
ln -s ../kernel-headers/rdma "$out/include/rdma"
ln -s ../../kernel-headers/rdma "$out/include/uapi/infiniband"
ln -s ../ccan ../util "$out/include/"
ln -s "$top/driver/urdma_hw.h" "$top/driver/urdma-abi.h" "$out/include/contract/"
for h in "$out"/kernel-headers/rdma/{ib_user_verbs,erdma-abi}.h "$top/driver/urdma-abi.h"; do
	python3 "$out/buildlib/make_abi_structs.py" "$h" "$out/include/kernel-abi/${h##*/}"
done
# The results of its CMake checks for gcc on a 64-bit Linux.
cat >"$out/include/config.h" <<-EOF
	#define SIZEOF_LONG 8
	#define HAVE_FUNC_ATTRIBUTE_ALWAYS_INLINE 1
	#define HAVE_STATEMENT_EXPR 1
	#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
	#define HAVE_TYPEOF 1
	#define HAVE_ISBLANK 1
	#define HAVE_BUILTIN_CLZ 1
	#define HAVE_BUILTIN_CLZL 1
	#define IBVERBS_PABI_VERSION 34
EOF
