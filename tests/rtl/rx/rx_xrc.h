/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the extended reliable connection. */
#ifndef RX_XRC_H
#define RX_XRC_H

#include "rx_ref.h"

void test_xrc(void **state);
void test_xrc_traffic(void **state);
void test_xrc_refused(void **state);
void test_xrc_keys(void **state);
void test_xrc_transport(void **state);
void test_xrc_flush(void **state);
void test_xrc_lives(void **state);
void test_xrc_wrap(void **state);
void test_xrc_dead(void **state);
void test_xrc_destroyed(void **state);
void test_xrc_again(void **state);
void test_xrc_behind_error(void **state);
void test_xrc_rates(void **state);

#endif
