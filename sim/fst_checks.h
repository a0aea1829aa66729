// SPDX-License-Identifier: Apache-2.0
/*
 * Included before Verilator's FST library (cmake/Verilate.cmake). The library checks the place of
 * the header that it has just written and ends the process if it is wrong, which it is whenever the
 * file could not be written. A simulation outlives a full disk: Waves::close() finds that out too,
 * and returns an error. The check is the library's only FST_CHECK_EQ besides the length of a date.
 */
#ifndef URDMA_SIM_FST_CHECKS_H
#define URDMA_SIM_FST_CHECKS_H

#include "fstcpp/fstcpp_assertion.h"

#undef FST_CHECK_EQ
#define FST_CHECK_EQ(a, b) ((void)((a) == (b)))

#endif
