# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034  # used by those that source it
# Sourced by the launcher and in the guest. Lines of the kernel that mean a bug of ours, whatever the
# command said: an extended regular expression. WARNING: is also how lockdep begins.
complaints='WARNING: |BUG[: ]|Oops|soft lockup|hard LOCKUP|rcu:.*stall|Kernel panic|general protection fault'
complaints="$complaints|KASAN|UBSAN|blocked for more than|refcount_t|ODEBUG: |list_(add|del) corruption"
complaints="$complaints|INFO: trying to register non-static key|waiting for .* to become free|ref_tracker: .*( has |leaked)"
# Not what the kernel says when it turns these on.
complaints="$complaints|DMA-API: [^ ]+ [0-9a-z.:]+: |DMA-API: debugging out of memory"
complaints="$complaints|kmemleak: .*suspected memory leaks|kmemleak: .*detector disabled"
# DMA debugging wants one mapping of a page; the RDMA core makes one for each region that a program registers there.
no_complaints='WARNING: CPU: .* at add_dma_entry\+|DMA-API: .* cacheline tracking EEXIST'
# The target of iSER syncs the headers of an answer, 76 bytes, before it has mapped them for the first time. Other lines of
# check_sync() are complaints.
no_complaints="$no_complaints|WARNING: CPU: .* at check_sync\\+"
no_complaints="$no_complaints|DMA-API: .* sync DMA memory it has not allocated \\[device address=0x0+\\] \\[size=76 bytes\\]"
