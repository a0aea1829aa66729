/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of multicast. */
#ifndef RX_MCAST_H
#define RX_MCAST_H

#include "rx_ref.h"

void test_mcast(void **state);
void test_mcast_table(void **state);
void test_mcast_whose(void **state);
void test_mcast_leave(void **state);
void test_mcast_twice(void **state);
void test_mcast_traffic(void **state);
void test_mcast_load(void **state);

#endif
