// SPDX-License-Identifier: Apache-2.0
#include "bench_limits.h"

#include "urdma_hw.h"

#define BEAT	    64u /* bytes of a beat of any stream */
#define RQ_HEAD	    16u /* descriptor in front of the payload on RQ */
#define RC_HEAD	    12u
#define DOORBELL    8u
#define SRQ_INDEX   2u	/* of a WQE's place in a shared receive queue */
#define SERVED_LINK 0.3 /* one way over the link takes this share of a DMA read's latency */

/* The least time that the NIC's own pipelines take for an RDMA packet. */
#define NIC_CYCLES 2u

/* Resources that the messages of a NIC occupy. */
enum resource {
	WIRE,
	NIC_TX,
	NIC_RX,
	LINK_UP,
	LINK_DOWN,
	RQ,
	RC,
	CQ,
	DMA_RD,
	DMA_WR,
	RESOURCES,
};

static const char *const resource_name[RESOURCES] = {
	[WIRE] = "wire",
	[NIC_TX] = "NIC, transmit",
	[NIC_RX] = "NIC, receive",
	[LINK_UP] = "PCIe, up",
	[LINK_DOWN] = "PCIe, down",
	[RQ] = "PCIe, RQ beats",
	[RC] = "PCIe, RC beats",
	[CQ] = "PCIe, CQ beats",
	[DMA_RD] = "DMA port, read",
	[DMA_WR] = "DMA port, write",
};

struct usage {
	double ns[RESOURCES]; /* for each message */
};

static uint32_t pieces(uint32_t len, uint32_t size)
{
	return (len + size - 1) / size;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

void limits_model_of(const struct urdma_cosim_config *config, struct limits_model *m)
{
	*m = (struct limits_model){
		.line = (double)config->rate_mbps / 1000,
		.delay = (double)config->delay_ns,
		.pcie = (double)config->pcie.mbps / 1000,
		.read = (double)config->pcie.latency_ns,
		.mps = config->pcie.mps,
		.mrrs = config->pcie.mrrs,
		.cpl = config->pcie.cpl ? config->pcie.cpl : config->pcie.mps,
	};
}

/* ---- the wire ------------------------------------------------------------------------------ */

uint32_t limits_roce(uint32_t ext, uint32_t payload)
{
	const uint32_t ethernet = 14, ipv4 = 20, udp = 8, icrc = 4;

	return ethernet + ipv4 + udp + LIMITS_BTH + ext + pieces(payload, 4) * 4 + icrc;
}

uint32_t limits_line(uint32_t len)
{
	if (len < URDMA_ETH_MIN_FRAME)
		len = URDMA_ETH_MIN_FRAME;
	return URDMA_ETH_PREAMBLE + len + URDMA_ETH_FCS + URDMA_ETH_GAP;
}

uint32_t limits_beats(uint32_t len)
{
	return pieces(len, BEAT);
}

double limits_flight(const struct limits_model *m, uint32_t len)
{
	return (limits_line(len) - URDMA_ETH_GAP) * 8 / m->line + m->delay;
}

/* An RDMA frame from one NIC to the other, n for each message. */
static void packet(const struct limits_model *m, struct usage *from, struct usage *to, uint32_t len,
		   double n)
{
	uint32_t beats = limits_beats(len);

	from->ns[WIRE] += n * limits_line(len) * 8 / m->line;
	from->ns[NIC_TX] += n * max(NIC_CYCLES, beats) * URDMA_SIM_CYCLE_NS;
	to->ns[NIC_RX] += n * max(NIC_CYCLES, beats) * URDMA_SIM_CYCLE_NS;
}

/*
 * The packets of a message's data: FIRST, MIDDLE and LAST, or ONLY. The headers after the BTH are
 * `each` bytes in every packet, and `first` bytes more in the FIRST, `last` in the LAST, `only` in
 * an ONLY.
 */
static void packets(const struct limits_model *m, struct usage *from, struct usage *to,
		    const struct limits_load *l, uint32_t each, uint32_t first, uint32_t last,
		    uint32_t only)
{
	uint32_t n = pieces(l->len, l->mtu);
	double again = 1 / (1 - l->loss); /* frames sent for each that arrives */

	if (n <= 1) {
		packet(m, from, to, limits_roce(each + only, l->len), again);
		return;
	}
	packet(m, from, to, limits_roce(each + first, l->mtu), again);
	packet(m, from, to, limits_roce(each, l->mtu), (n - 2) * again);
	packet(m, from, to, limits_roce(each + last, l->len - (n - 1) * l->mtu), again);
}

static bool is_reliable(const struct limits_load *l)
{
	return l->type != URDMA_QPT_UC && l->type != URDMA_QPT_UD;
}

static void wire(const struct limits_model *m, const struct limits_load *l, struct usage *requester,
		 struct usage *responder)
{
	/* for each request; answers have none */
	uint32_t xrceth = l->type == URDMA_QPT_XRC_INI ? LIMITS_XRCETH : 0;

	switch (l->opcode) {
	case URDMA_WR_READ:
		packet(m, requester, responder, limits_roce(xrceth + LIMITS_RETH, 0), 1);
		packets(m, responder, requester, l, 0, LIMITS_AETH, LIMITS_AETH, LIMITS_AETH);
		break;
	case URDMA_WR_ATOMIC_FA:
		packet(m, requester, responder, limits_roce(xrceth + LIMITS_ATOMIC_ETH, 0), 1);
		packet(m, responder, requester, limits_roce(LIMITS_AETH + LIMITS_ATOMIC_ACK, 0), 1);
		break;
	case URDMA_WR_WRITE:
		packets(m, requester, responder, l, xrceth, LIMITS_RETH, 0, LIMITS_RETH);
		break;
	case URDMA_WR_SEND_INV:
		packets(m, requester, responder, l, xrceth, 0, LIMITS_IETH, LIMITS_IETH);
		break;
	default:
		packets(m, requester, responder, l, xrceth, 0, 0,
			l->type == URDMA_QPT_UD ? LIMITS_DETH : 0);
	}
	if (l->answer)
		packet(m, requester, responder, limits_roce(LIMITS_IETH, l->answer), 1);
	if (!is_reliable(l))
		return;
	/* One ACK may answer everything that a QP has under way, but not more. */
	if (l->opcode != URDMA_WR_READ && l->opcode != URDMA_WR_ATOMIC_FA)
		packet(m, responder, requester, limits_roce(LIMITS_AETH, 0), 1.0 / l->window);
}

/* ---- DMA ----------------------------------------------------------------------------------- */

/*
 * n reads for each message at the NIC's own port, which device memory shares. At the port a beat
 * holds a line, since the data begin at a line.
 */
static void port_read(struct usage *u, uint32_t len, double n)
{
	u->ns[DMA_RD] += n * pieces(len, BEAT) * URDMA_SIM_CYCLE_NS;
}

static void port_write(struct usage *u, uint32_t len, double n)
{
	u->ns[DMA_WR] += n * pieces(len, BEAT) * URDMA_SIM_CYCLE_NS;
}

static void dma_read(const struct limits_model *m, struct usage *u, uint32_t len, double n)
{
	uint32_t requests = pieces(len, m->mrrs), answers = pieces(len, m->cpl);
	uint32_t tail = len - (answers - 1) * m->cpl;
	uint32_t beats =
		(answers - 1) * pieces(RC_HEAD + m->cpl, BEAT) + pieces(RC_HEAD + tail, BEAT);

	u->ns[LINK_UP] += n * requests * URDMA_PCIE_TLP_BYTES * 8 / m->pcie;
	u->ns[LINK_DOWN] += n * (len + answers * URDMA_PCIE_CPL_BYTES) * 8 / m->pcie;
	u->ns[RQ] += n * requests * URDMA_SIM_CYCLE_NS;
	u->ns[RC] += n * beats * URDMA_SIM_CYCLE_NS;
	port_read(u, len, n);
}

/* The share of len bytes in a read of full length: queue entries are read many at a time. */
static void dma_read_share(const struct limits_model *m, struct usage *u, double len)
{
	dma_read(m, u, m->mrrs, len / m->mrrs);
}

static void dma_write(const struct limits_model *m, struct usage *u, uint32_t len, double n)
{
	uint32_t requests = pieces(len, m->mps), tail = len - (requests - 1) * m->mps;
	uint32_t beats =
		(requests - 1) * pieces(RQ_HEAD + m->mps, BEAT) + pieces(RQ_HEAD + tail, BEAT);

	u->ns[LINK_UP] += n * (len + requests * URDMA_PCIE_TLP_BYTES) * 8 / m->pcie;
	u->ns[RQ] += n * beats * URDMA_SIM_CYCLE_NS;
	port_write(u, len, n);
}

/* The data of a message, in n equal pieces: no TLPs if they are in device memory. */
static void data_read(const struct limits_model *m, struct usage *u, uint32_t len, unsigned int n,
		      bool dm)
{
	if (dm)
		port_read(u, len / n, n);
	else
		dma_read(m, u, len / n, n);
}

static void data_write(const struct limits_model *m, struct usage *u, uint32_t len, unsigned int n,
		       bool dm)
{
	if (dm)
		port_write(u, len / n, n);
	else
		dma_write(m, u, len / n, n);
}

static void doorbell(const struct limits_model *m, struct usage *u, double n)
{
	u->ns[LINK_DOWN] += n * (URDMA_PCIE_TLP_BYTES + DOORBELL) * 8 / m->pcie;
	u->ns[CQ] += n * URDMA_SIM_CYCLE_NS;
}

static void dma(const struct limits_model *m, const struct limits_load *l, struct usage *requester,
		struct usage *responder)
{
	unsigned int sges = l->sges ? l->sges : 1;

	doorbell(m, requester, 1.0 / l->doorbell);
	dma_read_share(m, requester, l->stride * (1 - l->ahead));
	dma_write(m, requester, URDMA_CQE_SIZE, 1.0 / l->signaled);
	switch (l->opcode) {
	case URDMA_WR_ATOMIC_FA:
		data_write(m, responder, l->len, 1, l->responder_dm);
		/* fall through */
	case URDMA_WR_READ:
		data_read(m, responder, l->len, 1, l->responder_dm);
		data_write(m, requester, l->len, sges, l->requester_dm);
		break;
	case URDMA_WR_SEND:
	case URDMA_WR_SEND_INV:
		dma_read_share(m, responder, l->recv_stride + (l->srq ? SRQ_INDEX : 0));
		dma_write(m, responder, URDMA_CQE_SIZE, 1);
		/* fall through */
	default:
		if (!l->inlined)
			data_read(m, requester, l->len, sges, l->requester_dm);
		data_write(m, responder, l->len + (l->type == URDMA_QPT_UD ? LIMITS_GRH : 0), 1,
			   l->responder_dm);
	}
	if (l->answer) {
		dma_read_share(m, requester, l->stride);
		dma_read(m, requester, l->answer, 1);
		dma_read_share(m, responder, l->recv_stride);
		dma_write(m, responder, l->answer, 1);
		dma_write(m, responder, URDMA_CQE_SIZE, 1);
	}
	if (l->registered) {
		doorbell(m, responder, 1);
		dma_read_share(m, responder, l->stride);
		dma_write(m, responder, URDMA_CQE_SIZE, 1);
	}
}

double limits_dma_read(const struct limits_model *m, uint32_t len)
{
	return m->read + (URDMA_PCIE_TLP_BYTES + len + pieces(len, m->cpl) * URDMA_PCIE_CPL_BYTES) *
				 8 / m->pcie;
}

double limits_dma_write(const struct limits_model *m, uint32_t len)
{
	return m->read * SERVED_LINK +
	       (len + pieces(len, m->mps) * URDMA_PCIE_TLP_BYTES) * 8 / m->pcie;
}

double limits_doorbell(const struct limits_model *m)
{
	return m->read * SERVED_LINK + (URDMA_PCIE_TLP_BYTES + DOORBELL) * 8 / m->pcie;
}

/* ---- loads --------------------------------------------------------------------------------- */

/* The busiest resource of both NICs. */
static struct limit busiest(const struct usage *a, const struct usage *b)
{
	struct limit limit = { 0, "" };
	double most = 0;

	for (unsigned int r = 0; r < RESOURCES; r++) {
		double ns = max(a->ns[r], b->ns[r]);

		if (ns > most) {
			most = ns;
			limit = (struct limit){ 1000 / ns, resource_name[r] };
		}
	}
	return limit;
}

static void sum(struct usage *to, const struct usage *from)
{
	for (unsigned int r = 0; r < RESOURCES; r++)
		to->ns[r] += from->ns[r];
}

/*
 * The least time that a WQE is under way. For a READ or an ATOMIC it starts when the request
 * leaves, since the connection limits their number; for others it runs from the doorbell to the
 * CQE. Device memory answers at once.
 */
static double round_trip(const struct limits_model *m, const struct limits_load *l)
{
	/* Without an answer the WQE is done when the message has left. */
	double wires = l->loopback || !is_reliable(l) ? 0 : 2 * m->delay;
	double data = limits_dma_read(m, l->len);

	if (l->opcode == URDMA_WR_READ || l->opcode == URDMA_WR_ATOMIC_FA)
		return wires + (l->responder_dm ? 0 : data);
	return wires + limits_doorbell(m) + limits_dma_read(m, l->stride) +
	       (l->inlined || l->requester_dm ? 0 : data) + limits_dma_write(m, URDMA_CQE_SIZE);
}

struct limit limits_messages(const struct limits_model *m, const struct limits_load *l)
{
	/* that of the bench's connections: urdma_eh_conn_defaults() */
	const unsigned int rd_atomic = 16;
	struct usage requester = { 0 }, responder = { 0 };
	unsigned int window = l->window;
	struct limit limit;
	double outstanding;

	wire(m, l, &requester, &responder);
	dma(m, l, &requester, &responder);
	if (l->loopback) {
		requester.ns[WIRE] = 0;
		responder.ns[WIRE] = 0;
	}
	if (l->loopback || l->both_ways) {
		sum(&requester, &responder);
		responder = requester;
	}
	limit = busiest(&requester, &responder);
	if ((l->opcode == URDMA_WR_READ || l->opcode == URDMA_WR_ATOMIC_FA) && window > rd_atomic)
		window = rd_atomic;
	outstanding = (double)l->qps * window * 1000 / round_trip(m, l);
	if (outstanding < limit.value)
		limit = (struct limit){ outstanding, "outstanding" };
	return limit;
}

struct limit limits_frames(const struct limits_model *m, uint32_t len)
{
	const uint32_t tx_descriptor = 16, rx_descriptor = 8;
	struct usage from = { 0 }, to = { 0 };

	from.ns[WIRE] = limits_line(len) * 8 / m->line;
	from.ns[NIC_TX] = limits_beats(len) * URDMA_SIM_CYCLE_NS;
	to.ns[NIC_RX] = from.ns[NIC_TX];
	dma_read_share(m, &from, tx_descriptor);
	dma_read(m, &from, len, 1);
	dma_read_share(m, &to, rx_descriptor);
	dma_write(m, &to, len, 1);
	dma_write(m, &to, URDMA_ECQE_SIZE, 1);
	return busiest(&from, &to);
}
