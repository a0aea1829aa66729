/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Verilated NIC, with a digest of everything that it exchanges: the cycle and the shape of each
 * transfer on each stream, and each event of the trace taps. Two runs with equal digests did the
 * same in every cycle. When a NIC is destroyed, its name and its digest are appended to the file
 * that URDMA_TEST_DIGEST names.
 */
#ifndef URDMA_TESTS_DIGEST_H
#define URDMA_TESTS_DIGEST_H

#include "scheduler.h"

extern const struct urdma_model_ops digest_model;

#endif
