/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of UC and UD. */
#ifndef RX_UNREL_H
#define RX_UNREL_H

#include "rx_ref.h"

void test_uc(void **state);
void test_uc_refused(void **state);
void test_uc_back(void **state);
void test_ud(void **state);
void test_ud_dropped(void **state);
void test_unrel_sent(void **state);
void test_unrel_rates(void **state);

/* A datagram of any size to one of the port's addresses, now and then with a fault: lines that it
 * takes. */
unsigned int soak_datagram(struct bench *b, struct ref *r);

#endif
