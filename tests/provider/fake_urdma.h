/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Controls that tests of the provider have over the fake NIC, beyond fake_nic.h. The fake NIC
 * learns about CQs and QPs only from the commands to the kernel.
 */
#ifndef FAKE_URDMA_H
#define FAKE_URDMA_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <util/util.h>

#include "urdma_hw.h"

/* URDMA_RF_FEAT_* of the device that is opened next; initially all. */
extern uint64_t fake_urdma_features;

/* The offset at which device memory is mapped; 0: the real one. */
extern uint64_t fake_urdma_dm_offset;

/* The value of the NIC's clock. */
#define FAKE_CYCLES 0x123456789abull

/* Called while the NIC changes the ring of a CQ: before the change, and after it. */
extern void (*fake_urdma_at_resize)(bool done);

/* Writes the next CQE; the phase bit is added. */
void fake_urdma_cqe(struct ibv_cq *cq, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t cycles);

/* The WQE at an index of the QP that was created last, in host order; word 0 first. */
const uint64_t *fake_urdma_sqe(uint16_t index);
const uint64_t *fake_urdma_rqe(uint16_t index);

/* For an SRQ: the place that entry n of the ring of indices names, and the WQE of a place. */
uint16_t fake_urdma_srq_index(const struct ibv_srq *srq, uint16_t n);
const uint64_t *fake_urdma_srqe(const struct ibv_srq *srq, uint16_t place);
uint32_t fake_urdma_srq_places(const struct ibv_srq *srq);

/* Whether the QP that was created last has its own receive queue. */
bool fake_urdma_has_rq(void);

/* Number of slots, or of entries. */
uint32_t fake_urdma_sq_slots(void);
uint32_t fake_urdma_cqes(const struct ibv_cq *cq);

#endif
