// SPDX-License-Identifier: Apache-2.0
#include "events/names.h"

#include <assert.h>
#include <stddef.h>

#include "trace/events.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_trace_pkg.h"

static_assert(URDMA_CLIENTS == MRC_N, "clients of the translation");

#define NAME(table, n) ((n) < sizeof(table) / sizeof(*(table)) && (table)[n] ? (table)[n] : "?")

const char *urdma_name_op(uint64_t op)
{
	static const char *const names[] = {
		[URDMA_WR_SEND] = "SEND",
		[URDMA_WR_SEND_IMM] = "SEND with immediate",
		[URDMA_WR_SEND_INV] = "SEND with invalidate",
		[URDMA_WR_WRITE] = "RDMA WRITE",
		[URDMA_WR_WRITE_IMM] = "RDMA WRITE with immediate",
		[URDMA_WR_READ] = "RDMA READ",
		[URDMA_WR_ATOMIC_CS] = "compare and swap",
		[URDMA_WR_ATOMIC_FA] = "fetch and add",
		[URDMA_WR_LOCAL_INV] = "local invalidate",
		[URDMA_WR_REG_MR] = "fast register",
		[URDMA_WR_BIND_MW] = "bind memory window",
		[URDMA_WR_FLUSH] = "FLUSH",
		[URDMA_WR_ATOMIC_WRITE] = "ATOMIC WRITE",
	};

	return NAME(names, op);
}

bool urdma_op_sends(uint64_t op)
{
	return op != URDMA_WR_LOCAL_INV && op != URDMA_WR_REG_MR && op != URDMA_WR_BIND_MW;
}

const char *urdma_name_status(uint64_t status)
{
	static const char *const names[] = {
		[URDMA_WC_SUCCESS] = "success",
		[URDMA_WC_LOC_LEN_ERR] = "local length error",
		[URDMA_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[URDMA_WC_LOC_PROT_ERR] = "local protection error",
		[URDMA_WC_FLUSH_ERR] = "flushed",
		[URDMA_WC_MW_BIND_ERR] = "memory window bind error",
		[URDMA_WC_BAD_RESP_ERR] = "bad response error",
		[URDMA_WC_LOC_ACCESS_ERR] = "local access error",
		[URDMA_WC_REM_INV_REQ_ERR] = "remote invalid request error",
		[URDMA_WC_REM_ACCESS_ERR] = "remote access error",
		[URDMA_WC_REM_OP_ERR] = "remote operation error",
		[URDMA_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[URDMA_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
	};

	return NAME(names, status);
}

/* The five bits below the transport bits have the same meaning in all transports. */
const char *urdma_name_opcode(uint64_t opcode)
{
	static const char *const names[32] = {
		"SEND first",
		"SEND middle",
		"SEND last",
		"SEND last with immediate",
		"SEND only",
		"SEND only with immediate",
		"RDMA WRITE first",
		"RDMA WRITE middle",
		"RDMA WRITE last",
		"RDMA WRITE last with immediate",
		"RDMA WRITE only",
		"RDMA WRITE only with immediate",
		"RDMA READ request",
		"RDMA READ response first",
		"RDMA READ response middle",
		"RDMA READ response last",
		"RDMA READ response only",
		"acknowledge",
		"ATOMIC acknowledge",
		"compare and swap",
		"fetch and add",
		NULL,
		"SEND last with invalidate",
		"SEND only with invalidate",
		[0x1c] = "FLUSH",
		[0x1d] = "ATOMIC WRITE",
	};

	if (opcode == 0x81)
		return "CNP";
	return opcode < 0x100 ? NAME(names, opcode & 0x1f) : "?";
}

bool urdma_opcode_answers(uint64_t opcode)
{
	return opcode < 0x100 && opcode != 0x81 && (opcode & 0x1f) >= 0x0d &&
	       (opcode & 0x1f) <= 0x12;
}

bool urdma_opcode_unreliable(uint64_t opcode)
{
	return opcode >> 5 == 1 || opcode >> 5 == 3;
}

const char *urdma_name_cause(uint64_t cause)
{
	static const char *const names[URDMA_CAUSES] = {
		[TRC_PROGRESS] = "acknowledged",   [TRC_NAK] = "NAK sequence error",
		[TRC_IMPLIED] = "implied NAK",	   [TRC_TIMEOUT] = "time-out",
		[TRC_RNR_WAIT] = "RNR NAK, waits", [TRC_RNR] = "RNR NAK",
	};

	return NAME(names, cause);
}

bool urdma_cause_resends(uint64_t cause)
{
	return cause == TRC_NAK || cause == TRC_IMPLIED || cause == TRC_TIMEOUT || cause == TRC_RNR;
}

const char *urdma_name_verdict(uint64_t verdict)
{
	static const char *const names[URDMA_VERDICTS] = {
		[TRV_TAKEN] = "accepted",      [TRV_REPEATED] = "duplicate",
		[TRV_GAP] = "out of sequence", [TRV_RNR] = "receiver not ready",
		[TRV_REFUSED] = "refused",     [TRV_DROPPED] = "dropped",
	};

	return NAME(names, verdict);
}

const char *urdma_name_stream(uint64_t stream)
{
	static const char *const names[URDMA_TRACE_STREAMS] = {
		[URDMA_TRACE_STREAM_CQ] = "CQ: NIC takes no request",
		[URDMA_TRACE_STREAM_CC] = "CC: PCIe takes no completion",
		[URDMA_TRACE_STREAM_RQ] = "RQ: PCIe takes no request",
		[URDMA_TRACE_STREAM_RC] = "RC: NIC takes no completion",
		[URDMA_TRACE_STREAM_TX] = "MAC takes no frame",
	};

	return NAME(names, stream);
}

const char *urdma_name_client(uint64_t client)
{
	static const char *const names[URDMA_CLIENTS] = {
		[MRC_TX] = "transmit payload", [MRC_RX] = "receive payload",
		[MRC_SQ] = "send queue",       [MRC_RQ] = "receive queue",
		[MRC_CQ] = "completion queue",
	};

	return NAME(names, client);
}
