// SPDX-License-Identifier: Apache-2.0
/*
 * capture_run DIR: traffic of every kind, captured at both ports into DIR, for judges that know
 * nothing of this project: IPv4, IPv6, VLAN tags; each opcode and size class; immediate data,
 * solicited events; ACKs, RNR NAKs, NAKs for sequence, request, access and operation errors;
 * retransmission; RC and XRC. For each port it prints what the NIC's counters say was sent. The
 * capture has to hold the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "work.h"

enum { IPV4, IPV6, VLAN, VLAN6, KINDS };

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "capture_run: %s\n", what);
	exit(1);
}

/* GID entries 2 (IPv4) and 3 (IPv6): tagged. */
static void set_vlan_gid(struct rig *rig, unsigned int n, bool ipv6, uint8_t gid[16])
{
	struct urdma_eh_cmd cmd = { 0 };
	uint8_t mac[6];

	must(!urdma_eh_mac(rig->side[n].eh, mac), "MAC address");
	memset(gid, 0, 16);
	if (ipv6) {
		gid[0] = 0x20;
		gid[1] = 0x01;
		gid[2] = 0x0d;
		gid[3] = 0xb8;
		gid[15] = (uint8_t)(n + 1);
	} else {
		urdma_eh_gid_ipv4(gid, 0xc0000201 + n);
	}
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_SET_GID) |
		   URDMA_SET(URDMA_CMD0_OBJ, 2 + ipv6);
	cmd.w[1] = URDMA_CMD_GID1_VALID | (ipv6 ? 0 : URDMA_CMD_GID1_IPV4) |
		   URDMA_CMD_GID1_VLAN_VALID | URDMA_SET(URDMA_CMD_GID1_VLAN, 100);
	memcpy(&cmd.w[2], mac, 6);
	memcpy(&cmd.w[3], gid, 16);
	must(!urdma_eh_cmd(rig->side[n].eh, &cmd, NULL), "SET_GID");
}

static void connect_qps(struct rig *rig, struct urdma_eh_qp *const qp[2], unsigned int kind,
			unsigned int mtu, unsigned int retries)
{
	struct urdma_eh_conn conn[2];
	bool ipv6 = kind == IPV6 || kind == VLAN6;

	urdma_eh_conn_defaults(&conn[0], mtu);
	conn[0].retry = retries;
	conn[0].rnr_retry = retries;
	conn[1] = conn[0];

	for (unsigned int n = 0; n < 2; n++)
		must(!urdma_eh_to_reset(qp[n]), "to RESET");
	if (kind < VLAN) {
		must(!urdma_eh_connect_as(qp[0], qp[1], conn, ipv6), "connect");
		return;
	}
	for (unsigned int n = 0; n < 2; n++) {
		set_vlan_gid(rig, n, ipv6, conn[!n].dgid);
		must(!urdma_eh_mac(rig->side[n].eh, conn[!n].dmac), "MAC address");
		conn[n].dest_qpn = qp[!n]->qpn;
		conn[n].sq_psn = 0xfffffe;
		conn[n].rq_psn = 0xfffffe;
		conn[n].sgid_index = 2 + ipv6;
		conn[n].tclass = 0xa6; /* DSCP 41, ECN 2 */
		conn[n].hop_limit = 3;
		conn[n].flow_label = 0xabcde;
	}
	for (unsigned int n = 0; n < 2; n++) {
		must(!urdma_eh_to_init(qp[n], &conn[n]) && !urdma_eh_to_rtr(qp[n], &conn[n]),
		     "to RTR");
	}
	for (unsigned int n = 0; n < 2; n++)
		must(!urdma_eh_to_rts(qp[n], &conn[n]), "to RTS");
}

static void connect_pair(struct rig *rig, unsigned int kind, unsigned int mtu, unsigned int retries)
{
	struct urdma_eh_qp *const qp[2] = { &rig->side[0].qp[0], &rig->side[1].qp[0] };

	connect_qps(rig, qp, kind, mtu, retries);
}

static void settle(struct rig *rig)
{
	rig_check(rig,
		  urdma_cosim_run_while_busy(rig->cosim, urdma_cosim_now(rig->cosim) + 3000000),
		  "settle");
}

static struct urdma_eh_sge piece(struct rig *rig, unsigned int n, size_t at, uint32_t len)
{
	struct rig_side *side = &rig->side[n];

	return (struct urdma_eh_sge){ (uintptr_t)side->buffer + at, len, side->mr.key };
}

static unsigned int statuses(struct urdma_eh_cq *cq, unsigned int *last)
{
	struct urdma_eh_cqe cqe;
	unsigned int n = 0;

	while (urdma_eh_poll_cq(cq, &cqe, 1)) {
		*last = cqe.status;
		n++;
	}
	return n;
}

/* Registers a region on side n and returns its key, for a SEND that invalidates it. */
static uint32_t fast_key(struct rig *rig, unsigned int n, struct urdma_eh_mr *mr)
{
	struct rig_side *side = &rig->side[n];
	struct urdma_eh_cqe cqe;

	must(!urdma_eh_put_reg_mr(&side->qp[0], mr, (uint8_t)(mr->key + 1), URDMA_ACC_REMOTE_READ,
				  side->buffer, 4096, 0x1000, 1, 12, true),
	     "post REG_MR");
	urdma_eh_ring_sq(&side->qp[0]);
	rig_check(rig, urdma_eh_next_cqe(&side->send_cq, &cqe, 1000000), "REG_MR");
	must(!cqe.status, "REG_MR has failed");
	return mr->key;
}

static void good_traffic(struct rig *rig, struct urdma_eh_mr *mr, unsigned int mtu)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND,	   URDMA_WR_SEND_IMM,
					       URDMA_WR_SEND_INV,  URDMA_WR_WRITE,
					       URDMA_WR_WRITE_IMM, URDMA_WR_READ };
	const uint32_t size = 128u << mtu;
	const uint32_t lens[] = {
		0,	  1,	    2,	  3,	    4,	      63,	    64,	      65,
		size - 3, size - 1, size, size + 1, size + 2, 3 * size + 7, 5 * size, 20001
	};
	enum {
		LENS = sizeof(lens) / sizeof(lens[0]),
		OPCODES = sizeof(opcode) / sizeof(opcode[0])
	};

	for (unsigned int i = 0; i < LENS; i++) {
		struct work w[2];

		for (unsigned int n = 0; n < 2; n++) {
			unsigned int op = opcode[(i + n + mtu) % OPCODES];

			/* an ATOMIC does not depend on the length */
			if (i % 5 == 4)
				op = n ? URDMA_WR_ATOMIC_CS : URDMA_WR_ATOMIC_FA;
			w[n] = (struct work){ .opcode = op,
					      .from = n,
					      .at = n << 20,
					      .len = lens[i],
					      .odd = 13 * i % 64,
					      .pieces = 1 + i % 3,
					      .solicited = i % 2,
					      .seed = 1000 * n + i };
			if (op == URDMA_WR_SEND_INV)
				w[n].inv = fast_key(rig, !n, &mr[!n]);
		}
		work_run(rig, w, 2, 1000000, "capture_run");
	}
}

/* Drops one frame of a side: after left - 1 others. */
struct thief {
	unsigned int side, left;
};

static void steal(void *ctx, unsigned int side, struct urdma_eth_frame *frame,
		  struct urdma_wire_verdict *verdict)
{
	struct thief *t = ctx;

	(void)frame;
	if (side == t->side && t->left && !--t->left)
		verdict->drop = true;
}

/* Messages that end with a NAK, and how. */
enum bad { NO_RECV, BAD_RECV_KEY, SHORT_RECV, BAD_RKEY, NO_RETRY, BADS };

static void bad_traffic(struct rig *rig, enum bad how)
{
	static const unsigned int want[] = { URDMA_WC_RNR_RETRY_EXC_ERR, URDMA_WC_REM_OP_ERR,
					     URDMA_WC_REM_INV_REQ_ERR, URDMA_WC_REM_ACCESS_ERR,
					     URDMA_WC_RETRY_EXC_ERR };
	struct thief thief = { 0, 2 };
	struct urdma_eh_sge src = piece(rig, 0, 0, 9000), dst = piece(rig, 1, 1u << 20, 9000);
	struct urdma_eh_send wr = { .opcode = how == BAD_RKEY ? URDMA_WR_READ : URDMA_WR_SEND,
				    .signaled = true,
				    .raddr = dst.addr,
				    .rkey = dst.lkey ^ 1,
				    .sge = &src,
				    .n_sge = 1 };
	unsigned int status = 99;

	if (how == BAD_RECV_KEY)
		dst.lkey ^= 1;
	if (how == SHORT_RECV)
		dst.length = 8999;
	if (how != NO_RECV)
		must(!urdma_eh_post_recv(&rig->side[1].qp[0], &dst, 1), "post receive");
	settle(rig);
	if (how == NO_RETRY)
		urdma_wire_set_fault(urdma_cosim_wire(rig->cosim, 0), steal, &thief);
	must(!urdma_eh_post_send(&rig->side[0].qp[0], &wr), "post send");
	settle(rig);
	urdma_wire_set_fault(urdma_cosim_wire(rig->cosim, 0), NULL, NULL);
	must(statuses(&rig->side[0].send_cq, &status) == 1 && status == want[how],
	     "the status of a message that should fail");
	statuses(&rig->side[1].recv_cq, &status);
	settle(rig);
}

/* A frame is lost, and the message still arrives. */
static void lossy_traffic(struct rig *rig)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct thief thief = { side, 2 };
		struct work w = { .opcode = side ? URDMA_WR_READ : URDMA_WR_WRITE,
				  .len = 9000,
				  .seed = side };

		urdma_wire_set_fault(urdma_cosim_wire(rig->cosim, 0), steal, &thief);
		work_run(rig, &w, 1, 1000000, "capture_run, a frame lost");
		urdma_wire_set_fault(urdma_cosim_wire(rig->cosim, 0), NULL, NULL);
		must(!thief.left, "no frame was lost");
	}
}

/* ---- XRC: an initiator at side 0, a target and two SRQs at side 1 ---------------------------- */

struct xrc {
	struct urdma_eh_qp ini, tgt;
	struct urdma_eh_srq srq[2];
};

static void make_xrc(struct rig *rig, struct xrc *x)
{
	struct urdma_eh_qp_attr ini = { .qpn = 0x100,
					.pd = RIG_PD,
					.send_cq = &rig->side[0].send_cq,
					.db_page = RIG_DB_PAGE,
					.log_sq = 4,
					.log_sq_stride = 7,
					.type = URDMA_QPT_XRC_INI };
	struct urdma_eh_qp_attr tgt = { .qpn = 0x200, .pd = RIG_XRCD, .type = URDMA_QPT_XRC_TGT };

	must(!urdma_eh_alloc_pd(rig->side[1].eh, RIG_XRCD), "XRC domain");
	for (unsigned int i = 0; i < 2; i++) {
		struct urdma_eh_srq_attr attr = { .srqn = 0x55 + i,
						  .pd = RIG_PD,
						  .db_page = RIG_DB_PAGE,
						  .log_entries = 4,
						  .log_stride = 6,
						  .xrc = true,
						  .xrcd = RIG_XRCD,
						  .cq = &rig->side[1].recv_cq };

		must(!urdma_eh_create_srq(rig->side[1].eh, &attr, &x->srq[i]), "create SRQ");
	}
	must(!urdma_eh_create_qp(rig->side[0].eh, &ini, &x->ini) &&
		     !urdma_eh_create_qp(rig->side[1].eh, &tgt, &x->tgt),
	     "create QPs of XRC");
}

static void destroy_xrc(struct rig *rig, struct xrc *x)
{
	must(!urdma_eh_destroy_qp(&x->ini) && !urdma_eh_destroy_qp(&x->tgt), "destroy QPs of XRC");
	for (unsigned int i = 0; i < 2; i++)
		must(!urdma_eh_destroy_srq(&x->srq[i]), "destroy SRQ");
	must(!urdma_eh_dealloc_pd(rig->side[1].eh, RIG_XRCD), "XRC domain");
}

static void xrc_message(struct rig *rig, struct xrc *x, unsigned int op, unsigned int i,
			uint32_t len, uint32_t key, unsigned int want)
{
	struct urdma_eh_sge src = piece(rig, 0, 13 * i % 64, len);
	struct urdma_eh_sge dst = piece(rig, 1, 1u << 20, work_is_atomic(op) ? 8 : len);
	struct urdma_eh_send wr = { .opcode = op,
				    .signaled = true,
				    .solicited = i % 2,
				    .srqn = x->srq[i % 2].srqn,
				    .raddr = dst.addr,
				    .rkey = dst.lkey,
				    .key = key,
				    .imm = 0x12345678,
				    .swap_add = i,
				    .sge = &src,
				    .n_sge = 1 };
	struct urdma_eh_cqe cqe;

	if (work_is_atomic(op))
		src.length = 8;
	if (work_takes_recv(op)) {
		must(urdma_eh_put_srq_recv(&x->srq[i % 2], &dst, 1) >= 0, "put receive");
		urdma_eh_ring_srq(&x->srq[i % 2]);
	}
	rig_fill(rig->side[0].buffer + 13 * i % 64, src.length, i);
	must(!urdma_eh_post_send(&x->ini, &wr), "post send");
	rig_check(rig, urdma_eh_next_cqe(&rig->side[0].send_cq, &cqe, 4000000), "send of XRC");
	must(cqe.status == want, "the status of a message of XRC");
	settle(rig);
	if (work_takes_recv(op)) {
		must(urdma_eh_poll_cq(&rig->side[1].recv_cq, &cqe, 1) == 1 && !cqe.status,
		     "receive of XRC");
		urdma_eh_srq_give_back(&x->srq[i % 2], cqe.wqe);
	}
}

static void xrc_traffic(struct rig *rig, struct xrc *x, struct urdma_eh_mr *mr, unsigned int mtu)
{
	const uint32_t size = 128u << mtu;
	const uint32_t lens[] = { 0, 1, 3, 63, 64, 65, size - 1, size, size + 1, 3 * size + 7 };
	unsigned int i = mtu;

	for (unsigned int k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
		for (unsigned int op = URDMA_WR_SEND; op <= URDMA_WR_ATOMIC_FA; op++, i++) {
			struct thief thief = { k % 2, 1 + i % 3 };
			uint32_t key = op == URDMA_WR_SEND_INV ? fast_key(rig, 1, mr) : 0;

			if (i % 9 == 0)
				urdma_wire_set_fault(urdma_cosim_wire(rig->cosim, 0), steal,
						     &thief);
			xrc_message(rig, x, op, i, lens[k], key, 0);
			urdma_wire_set_fault(urdma_cosim_wire(rig->cosim, 0), NULL, NULL);
		}
	}
}

int main(int argc, char **argv)
{
	struct urdma_eh_mr mr[2];
	struct xrc xrc;
	struct rig_config config;
	struct rig rig;

	must(argc == 2, "usage: capture_run DIR");
	rig_defaults(&config);
	config.capture = argv[1];
	config.log_stride = 7;
	config.priv = true;
	rig_start(&rig, &config);
	for (unsigned int n = 0; n < 2; n++)
		must(!urdma_eh_create_mr_kind(rig.side[n].eh, 9, 0, RIG_PD, URDMA_MRK_FAST, &mr[n]),
		     "create MR");
	make_xrc(&rig, &xrc);
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		struct urdma_eh_qp *const qp[2] = { &xrc.ini, &xrc.tgt };

		for (unsigned int mtu = 1; mtu <= 5; mtu++) {
			connect_pair(&rig, kind, mtu, 7);
			good_traffic(&rig, mr, mtu);
			lossy_traffic(&rig);
			connect_qps(&rig, qp, kind, mtu, 7);
			xrc_traffic(&rig, &xrc, &mr[1], mtu);
		}
		/* NAKs of XRC: an SRQ number that does not exist */
		xrc.srq[0].srqn ^= 0x800000;
		xrc_message(&rig, &xrc, URDMA_WR_WRITE, 0, 3000, 0, URDMA_WC_REM_INV_REQ_ERR);
		xrc.srq[0].srqn ^= 0x800000;
		for (unsigned int how = 0; how < BADS; how++) {
			connect_pair(&rig, kind, 3, 0);
			bad_traffic(&rig, how);
		}
	}
	settle(&rig);
	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eh *eh = rig.side[n].eh;

		printf("%lu frames, %lu ACKs, %lu RNR NAKs, %lu other NAKs\n",
		       (unsigned long)urdma_eh_counter(eh, URDMA_CNT_TX_RDMA_PKTS),
		       (unsigned long)urdma_eh_counter(eh, URDMA_CNT_TX_ACK),
		       (unsigned long)urdma_eh_counter(eh, URDMA_CNT_TX_NAK_RNR),
		       (unsigned long)(urdma_eh_counter(eh, URDMA_CNT_TX_NAK_SEQ) +
				       urdma_eh_counter(eh, URDMA_CNT_TX_NAK_OTHER)));
	}
	urdma_cosim_flush_captures(rig.cosim);
	destroy_xrc(&rig, &xrc);
	for (unsigned int n = 0; n < 2; n++)
		must(!urdma_eh_destroy_mr(&mr[n]), "destroy MR");
	rig_stop(&rig);
	return 0;
}
