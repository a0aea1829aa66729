/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of shared receive queues, and their helpers. */
#ifndef RX_SRQ_H
#define RX_SRQ_H

#include "rx_ref.h"

/* SRQ i of a test, in memory where QP i would have its own ring. */
struct ref_srq *srq_open(struct bench *b, int i, uint8_t log_entries, uint8_t log_stride);
void srq_close(struct bench *b, struct ref_srq *q);
/* QP i of a test, in a new life, with this SRQ; or one that there is. */
struct ref *srq_qp(struct bench *b, int i, uint8_t type, uint8_t mtu, struct ref_srq *q);
void srq_attach(struct bench *b, struct ref *r, struct ref_srq *q);
/* A WQE at a place that is free, which it returns; a number in the ring of indices, as it is. */
uint16_t srq_post(struct bench *b, struct ref_srq *q, const struct sge *s, unsigned int num);
void srq_index(struct bench *b, struct ref_srq *q, uint16_t place);
void srq_ring(struct bench *b, struct ref_srq *q);
/* n WQEs for messages of len bytes, or as many as there is room for; with the doorbell. */
void srq_receives(struct bench *b, struct ref_srq *q, unsigned int n, uint32_t len);
/* Until the NIC is idle; then everything is compared with the reference. */
void srq_settle(struct bench *b);
/* The consumer's index. */
uint64_t srq_query(struct bench *b, const struct ref_srq *q);
/* As qp_mgr ends a QP. */
void srq_end_qp(struct bench *b, struct ref *r);

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

/* rx_srq_edges.c */
void test_srq_lines(void **state);
void test_srq_pd(void **state);
void test_srq_no_right(void **state);
void test_srq_held_last(void **state);
void test_srq_doorbells(void **state);
void test_srq_last_wqe(void **state);
void test_srq_reset_beside(void **state);
void test_srq_reset_own(void **state);
void test_srq_flush_of_before(void **state);
void test_srq_behind_bad(void **state);

#endif
