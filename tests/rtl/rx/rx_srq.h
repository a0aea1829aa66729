/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of shared receive queues. */
#ifndef RX_SRQ_H
#define RX_SRQ_H

#include "rx_ref.h"

/* Post a WQE to a place that is free; the doorbell. */
uint16_t post_srq(struct bench *b, struct ref_srq *q, const struct sge *s, unsigned int num);
void ring_srq(struct bench *b, struct ref_srq *q);

void test_srq(void **state);
void test_srq_traffic(void **state);
void test_srq_uc(void **state);
void test_srq_flush(void **state);
void test_srq_behind_error(void **state);
void test_srq_index(void **state);
void test_srq_unread(void **state);
void test_srq_gone(void **state);
void test_srq_many(void **state);
void test_srq_rates(void **state);

#endif
