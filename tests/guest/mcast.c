// SPDX-License-Identifier: Apache-2.0
/*
 * mcast DEVICE GID-INDEX DEVICE GID-INDEX GROUP: datagrams to a group, IPv4 or IPv6, by verbs
 * alone: members on both devices, and QPs that are not members; a sender that does not want to hear
 * itself; a member that was reset; a full table. Exit status 0 if each member got each of its
 * datagrams once, and no other QP got any.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define QPS	4u
#define NO_LOOP 3u /* of each device: it does not hear members of its own device */
#define DEPTH	16u
#define SLOT	2048u
#define GRH	40u
#define LEN	500u
#define QKEY	0x22334455u
#define ALL	0xffffffu
#define GROUPS	64

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[QPS];
	struct ibv_ah *ah;
	uint8_t *memory; /* a slot for each receive, and one to send from */
	unsigned int posted[QPS], got[QPS];
	uint8_t gid_index;
};

static struct side side[2];
static union ibv_gid group;

static void die(const char *what)
{
	fprintf(stderr, "mcast: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void post(struct side *s, unsigned int q, unsigned int n)
{
	while (n--) {
		unsigned int i = q * DEPTH + s->posted[q]++ % DEPTH;
		struct ibv_sge sge = { (uintptr_t)(s->memory + i * SLOT), SLOT, s->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (ibv_post_recv(s->qp[q], &wr, &bad))
			die("post_recv");
	}
}

static void start_qp(struct side *s, unsigned int q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	if (ibv_modify_qp(s->qp[q], &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		die("INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(s->qp[q], &attr, IBV_QP_STATE))
		die("RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(s->qp[q], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("RTS");
	s->posted[q] = 0;
	post(s, q, DEPTH);
}

static void open_side(struct side *s, const char *name, const char *gid_index)
{
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1, .grh.hop_limit = 4 };
	size_t bytes = (QPS * DEPTH + 1) * SLOT;

	s->gid_index = (uint8_t)atoi(gid_index);
	s->ctx = open_device(name);
	if (!s->ctx)
		exit(1);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 4 * QPS * DEPTH, NULL, NULL, 0);
	s->memory = calloc(1, bytes);
	if (!s->pd || !s->cq || !s->memory)
		die("objects");
	s->mr = ibv_reg_mr(s->pd, s->memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!s->mr)
		die("memory");
	for (unsigned int q = 0; q < QPS; q++) {
		struct ibv_qp_init_attr_ex init = {
			.send_cq = s->cq,
			.recv_cq = s->cq,
			.qp_type = IBV_QPT_UD,
			.cap = { DEPTH, DEPTH, 1, 1, 0 },
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
			.create_flags = q == NO_LOOP ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0,
			.pd = s->pd,
		};

		s->qp[q] = ibv_create_qp_ex(s->ctx, &init);
		if (!s->qp[q])
			die("QP");
		start_qp(s, q);
	}
	to.grh.dgid = group;
	to.grh.sgid_index = s->gid_index;
	s->ah = ibv_create_ah(s->pd, &to);
	if (!s->ah)
		die("address handle");
}

/* The members hear the datagram within 10 s, and for 0.2 s nobody hears anything else. */
static void expect(unsigned int from, unsigned int from_qp, const unsigned int want[2],
		   uint8_t fill)
{
	struct side *s = &side[from];
	uint8_t *data = s->memory + QPS * DEPTH * SLOT;
	struct ibv_sge sge = { (uintptr_t)data, LEN, s->mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr_id = ~0ull,
				  .wr.ud = { s->ah, ALL, QKEY } },
			   *bad;
	unsigned int got[2] = { 0, 0 };
	struct timespec now, end;
	bool sent = false;

	memset(data, fill, LEN);
	if (ibv_post_send(s->qp[from_qp], &wr, &bad))
		die("post_send");
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 10;
	for (bool complete = false;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > end.tv_sec ||
		    (now.tv_sec == end.tv_sec && now.tv_nsec > end.tv_nsec))
			break;
		for (unsigned int n = 0; n < 2; n++) {
			struct ibv_wc wc;
			unsigned int q;

			if (ibv_poll_cq(side[n].cq, 1, &wc) != 1)
				continue;
			if (wc.status) {
				fprintf(stderr, "mcast: status %s\n", ibv_wc_status_str(wc.status));
				exit(1);
			}
			if (wc.opcode == IBV_WC_SEND) {
				sent = true;
				continue;
			}
			q = (unsigned int)wc.wr_id / DEPTH;
			if (wc.byte_len != LEN + GRH || wc.src_qp != s->qp[from_qp]->qp_num ||
			    !(wc.wc_flags & IBV_WC_GRH) || got[n] >> q & 1) {
				fprintf(stderr, "mcast: device %u QP %u: %u bytes, twice: %u\n", n,
					q, wc.byte_len, got[n] >> q & 1);
				exit(1);
			}
			for (unsigned int i = 0; i < LEN; i++)
				if (side[n].memory[wc.wr_id * SLOT + GRH + i] != fill) {
					fprintf(stderr, "mcast: wrong data\n");
					exit(1);
				}
			/*
			 * the destination in the header: its last bytes, the same for both families
			 */
			if (memcmp(side[n].memory + wc.wr_id * SLOT + 36, group.raw + 12, 4)) {
				fprintf(stderr, "mcast: wrong destination in the GRH\n");
				exit(1);
			}
			got[n] |= 1u << q;
			post(&side[n], q, 1);
		}
		if (!complete && sent && got[0] == want[0] && got[1] == want[1]) {
			complete = true;
			end = now;
			end.tv_nsec += 200000000;
			if (end.tv_nsec >= 1000000000) {
				end.tv_sec++;
				end.tv_nsec -= 1000000000;
			}
		}
	}
	if (!sent || got[0] != want[0] || got[1] != want[1]) {
		fprintf(stderr, "mcast: from device %u QP %u: QPs %#x %#x have it, not %#x %#x\n",
			from, from_qp, got[0], got[1], want[0], want[1]);
		exit(1);
	}
}

/* Joins as many groups as the device reports, then one too many; one is in use. */
static void whole_table(struct ibv_qp *qp, const struct ibv_device_attr *attr)
{
	union ibv_gid gid = { .raw = { 0xff, 0x15 } };
	int n, err = 0;

	if (attr->max_mcast_grp != GROUPS || attr->max_mcast_qp_attach < GROUPS ||
	    attr->max_total_mcast_qp_attach < GROUPS) {
		fprintf(stderr, "mcast: the device says %d groups\n", attr->max_mcast_grp);
		exit(1);
	}
	for (n = 0; n <= GROUPS && !err; n++) {
		gid.raw[15] = (uint8_t)n;
		err = ibv_attach_mcast(qp, &gid, 0);
	}
	if (n != GROUPS || err != ENOSPC) {
		fprintf(stderr, "mcast: attachment %d: %s\n", n, strerror(err));
		exit(1);
	}
	while (--n) {
		gid.raw[15] = (uint8_t)(n - 1);
		if (ibv_detach_mcast(qp, &gid, 0))
			die("detach");
	}
}

int main(int argc, char **argv)
{
	static const unsigned int members[2] = { 0xb, 0x5 };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	union ibv_gid own = { .raw = { 0 } };
	struct ibv_device_attr attr;
	unsigned int want[2];

	if (argc != 6) {
		fprintf(stderr, "usage: mcast DEVICE GID-INDEX DEVICE GID-INDEX GROUP\n");
		return 2;
	}
	if (inet_pton(AF_INET, argv[5], group.raw + 12) == 1)
		memset(group.raw + 10, 0xff, 2);
	else if (inet_pton(AF_INET6, argv[5], group.raw) != 1)
		die(argv[5]);
	open_side(&side[0], argv[1], argv[2]);
	open_side(&side[1], argv[3], argv[4]);
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int q = 0; q < QPS; q++)
			if (members[n] >> q & 1 && ibv_attach_mcast(side[n].qp[q], &group, 0))
				die("attach");
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int q = 0; q < QPS; q++) {
			memcpy(want, members, sizeof(want));
			if (q == NO_LOOP)
				want[n] = 0;
			expect(n, q, want, (uint8_t)(1 + n * QPS + q));
		}
	/* a member stays a member over RESET */
	if (ibv_modify_qp(side[0].qp[1], &reset, IBV_QP_STATE))
		die("RESET");
	start_qp(&side[0], 1);
	expect(1, 0, members, 20);
	/* a member leaves; it leaves again, or asks for an address that is not a group */
	if (ibv_detach_mcast(side[0].qp[0], &group, 0))
		die("detach");
	want[0] = 0xa;
	want[1] = members[1];
	expect(0, 0, want, 21);
	if (!ibv_detach_mcast(side[0].qp[0], &group, 0) ||
	    !ibv_attach_mcast(side[0].qp[0], &own, 0)) {
		fprintf(stderr, "mcast: a detachment or an attachment that is wrong succeeds\n");
		return 1;
	}
	if (ibv_query_device(side[0].ctx, &attr))
		die("query_device");
	whole_table(side[0].qp[2], &attr);
	/* a QP that is a member is destroyed; the others end with the process */
	if (ibv_detach_mcast(side[1].qp[0], &group, 0) || ibv_destroy_qp(side[1].qp[0]))
		die("destroy_qp");
	printf("ok: %s\n", argv[5]);
	return 0;
}
