/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libibverbs and the kernel, so that a provider runs in a plain program. There is one
 * device, whose doorbell pages are memory. Verbs that make system calls succeed, or fail when the
 * test says so; what a kernel driver adds to their answers comes from fake_nic.h.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdint.h>

#include <infiniband/driver.h>

/* Of the provider that is linked into the program; set by fake_open(). */
extern const struct verbs_context_ops *fake_ops;

/* When it is not 0, the kernel fails with it. */
extern int fake_error;

/* What query_device says of the NIC's clock. */
#define FAKE_KHZ 250000

/* Number of the QP that is created next, and of the SRQ. */
extern uint32_t fake_next_qpn, fake_next_srqn;

/* Flags of the QP that was created last by the extended command, and how many memberships of groups
 * there are. */
extern uint32_t fake_create_flags;
extern int fake_members;

/* Flags of the CQ that was created last by the extended command, and the last moderation. */
extern uint32_t fake_cq_flags;
extern struct ibv_moderate_cq fake_moderation;

/* File of the last region of a dma-buf. */
extern int fake_dmabuf_fd;

/* How many pieces of device memory the kernel has given out, and not got back. */
extern int fake_dms;

/* Opens the device; NULL when the provider refuses. */
struct ibv_context *fake_open(void);
void fake_close(struct ibv_context *ctx);

/* Of the doorbell pages at an offset: what the provider wrote last. */
uint64_t *fake_doorbell(uint32_t offset);

/* Device memory, all of it; and where the provider has mapped its first page. */
uint8_t *fake_dm(void);
void *fake_dm_mapped(void);

/* How many pages of doorbells and device memory are mapped. */
unsigned int fake_pages_mapped(void);

#endif
