/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces libibverbs and the kernel, so that a provider runs in a plain program. There is one
 * device, whose doorbell pages are memory. Verbs that make system calls succeed, or fail when the
 * test asks for it; fake_nic.h supplies the kernel driver's part of their answers.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdint.h>

#include <infiniband/driver.h>

/* Operations of the provider that is linked into the program; set by fake_open(). */
extern const struct verbs_context_ops *fake_ops;

/* When it is not 0, the kernel fails with this errno. */
extern int fake_error;

/* The NIC's clock according to query_device. */
#define FAKE_KHZ 250000

/* Number of the QP that is created next, and of the SRQ. */
extern uint32_t fake_next_qpn, fake_next_srqn;

/* Flags of the QP that was created last by the extended command, and the number of multicast
 * memberships. */
extern uint32_t fake_create_flags;
extern int fake_members;

/* Flags of the CQ that was created last by the extended command, and the last moderation. */
extern uint32_t fake_cq_flags;
extern struct ibv_moderate_cq fake_moderation;

/* The file of the last dma-buf region. */
extern int fake_dmabuf_fd;

/* How many pieces of device memory the kernel has given out and not got back. */
extern int fake_dms;

/* Opens the device; NULL when the provider refuses. */
struct ibv_context *fake_open(void);
void fake_close(struct ibv_context *ctx);

/* What the provider last wrote at an offset of the doorbell pages. */
uint64_t *fake_doorbell(uint32_t offset);

/* All device memory, and the address at which the provider has mapped its first page. */
uint8_t *fake_dm(void);
void *fake_dm_mapped(void);

/* The number of mapped pages of doorbells and device memory. */
unsigned int fake_pages_mapped(void);

#endif
