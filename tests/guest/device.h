/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the guest's test programs share. */
#ifndef TESTS_GUEST_DEVICE_H
#define TESTS_GUEST_DEVICE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* The device of that name; NULL, with a message, if there is none. */
static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		fprintf(stderr, "cannot open %s\n", name);
	return ctx;
}

/* A first PSN. The wire checker distinguishes connections by them. */
static inline uint32_t random_psn(void)
{
	uint32_t psn = 0;

	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		perror("random number");
	return psn & 0xffffff;
}

/* One end of a reliable connection, as the other end knows it. */
struct rc_end {
	union ibv_gid gid;
	uint32_t qpn, psn;
};

/* ACK time-out of the connections that connect_rc() makes: 4.096 us * 2^n. */
static uint8_t ack_timeout __attribute__((unused)) = 14;

/* Moves an RC QP from RESET to RTS. Returns 0, or the result of ibv_modify_qp(). */
static inline int connect_rc(struct ibv_qp *qp, unsigned int access, uint8_t gid_index,
			     enum ibv_mtu mtu, uint32_t psn, const struct rc_end *peer)
{
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.path_mtu = mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = peer->gid,
				      .sgid_index = gid_index,
				      .hop_limit = 64 } },
		.sq_psn = psn,
		.timeout = ack_timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	int err = ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTR;
	/* The link-local address of a guest that has just booted is not valid yet. */
	for (int tries = 0; (err = ibv_modify_qp(qp, &attr, rtr)) == ETIMEDOUT && tries < 20;
	     tries++)
		;
	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

#endif
