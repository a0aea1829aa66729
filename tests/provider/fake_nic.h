/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NIC and its kernel driver as a provider sees them, where providers differ. One file
 * implements this for each provider.
 */
#ifndef FAKE_NIC_H
#define FAKE_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>

/* Limits of the NIC: of QP numbers, and of CQs. */
#define FAKE_QPNS 8
#define FAKE_CQS  8
#define FAKE_SRQS 8

#define FAKE_DOORBELL_BYTES (3 * 4096)
/* Device memory, which follows the doorbells in the file of a context. */
#define FAKE_PAGE     4096
#define FAKE_DM_BYTES (4 * FAKE_PAGE)

struct ibv_command_buffer;

/* The kernel driver's part of the answers. Numbers of CQs, QPs and SRQs count up. */
void fake_nic_context(struct ib_uverbs_get_context_resp *resp);
void fake_nic_create_ah(const struct ibv_ah_attr *attr, void *resp);
void fake_nic_create_cq(const void *cmd, void *resp, uint32_t cqn);
/* An errno with which the NIC refuses it. */
int fake_nic_resize_cq(const void *cmd, void *resp, uint32_t cqn);
void fake_nic_create_qp(const void *cmd, void *resp, uint32_t qpn);
void fake_nic_create_srq(const void *cmd, void *resp, uint32_t srqn);
void fake_nic_alloc_dm(uint64_t length, struct ibv_command_buffer *driver);
/* A method of the driver's own; all its attributes are in one buffer. */
void fake_nic_ioctl(struct ibv_command_buffer *cmd);

/*
 * Completes the next WQE in the send or receive queue of a QP, with a good CQE in a CQ. WQEs are
 * WRITEs, and receives of a SEND.
 */
void fake_nic_complete(struct ibv_cq *cq, struct ibv_qp *qp, bool recv);

#endif
