/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Verilated NIC behind a C API: one struct urdma_sim is one instance of rtl/urdma_top.sv.
 *
 * A call of urdma_sim_cycle() is one clock cycle as a synchronous neighbour of the NIC sees it. The
 * caller sets all inputs of the cycle, including valid and ready, before the call. The model is
 * evaluated twice:
 *
 *   1. with the clock low and the new inputs: outputs that depend combinationally on inputs of the
 *      same cycle (a ready that looks at a valid) settle, and all outputs are copied out;
 *   2. with the clock high: the registers take their next values.
 *
 * So after the call `in` and `out` are the values at the rising edge that ended the cycle. A
 * transfer took place on a stream if and only if valid and ready are both set in them. `data`,
 * `keep`, `user` and `last` of an output stream are written only when its valid is set.
 *
 * Field positions inside `user` and the descriptors are those of AMD PG213, see cosim/pcie/pg213.h.
 * Byte 0 of a beat is the lowest byte of data[0]; on this little-endian library's hosts data can be
 * seen as an array of 64 bytes.
 */
#ifndef URDMA_SIM_H
#define URDMA_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "beats are exchanged as bytes in memory order: little-endian hosts only"
#endif

#define URDMA_SIM_CYCLE_NS   4u /* 250 MHz */
#define URDMA_SIM_BEAT_BYTES 64u
#define URDMA_SIM_BEAT_DW    16u
#define URDMA_SIM_LANES	     26u

/* One beat of CQ, CC, RQ or RC. keep has one bit a dword. user: 183, 81, 137, 161 bits used. */
struct urdma_pcie_beat {
	uint32_t data[URDMA_SIM_BEAT_DW];
	uint32_t user[6];
	uint16_t keep;
	uint8_t last;
	uint8_t valid;
};

/* One beat to or from the MAC. keep has one bit a byte. error counts with last. */
struct urdma_eth_beat {
	uint32_t data[URDMA_SIM_BEAT_DW];
	uint64_t keep;
	uint8_t last;
	uint8_t error;
	uint8_t valid;
};

/* Inputs of the NIC. Zeroed memory is a quiet, unconnected NIC. */
struct urdma_sim_in {
	struct urdma_pcie_beat cq;
	struct urdma_pcie_beat rc;
	struct urdma_eth_beat rx;
	uint64_t mac_default;
	uint64_t cycle; /* number of this cycle, for the time in waves; the NIC does not see it */
	uint64_t skip_cycles; /* with skip_valid: cycles that passed besides this one */
	uint8_t rst;
	uint8_t cc_ready;
	uint8_t rq_ready;
	uint8_t irq_ready;
	uint8_t tx_ready;
	uint8_t cfg_max_payload;  /* 0: 128 bytes ... 3: 1024 */
	uint8_t cfg_max_read_req; /* 0: 128 bytes ... 5: 4096 */
	uint8_t cfg_bus_master_en;
	uint8_t link_up;
	uint8_t skip_valid;
	uint8_t all_parts; /* every part gets each clock, for tests: see urdma_sim_cycle() */
};

/* An event of a lane, the bits of its type in rtl/urdma_trace_pkg.sv. */
struct urdma_sim_lane {
	uint32_t w[3];
};

/* Outputs of the NIC. */
struct urdma_sim_out {
	struct urdma_pcie_beat cc;
	struct urdma_pcie_beat rq;
	struct urdma_eth_beat tx;
	uint32_t timer_cycles; /* with timer_armed: cycles until the next timer fires */
	uint8_t cq_ready;
	uint8_t rc_ready;
	uint8_t irq_valid;
	uint8_t irq_vec;
	uint8_t idle;  /* no work is inside */
	uint8_t still; /* see urdma_sim_cycle() */
	uint8_t timer_armed;
	const char *mover;    /* a part that keeps the NIC from being still, or NULL */
	const char *surprise; /* with all_parts: a part that changed and would have had no clock, or
				 NULL */
	uint32_t traced;      /* lanes with an event, one bit each; only their events are set */
	struct urdma_sim_lane lane[URDMA_SIM_LANES];
};

struct urdma_sim;

/* name appears in messages of the model ($display, assertions). Returns NULL when there is no
 * memory. */
struct urdma_sim *urdma_sim_create(const char *name);
void urdma_sim_destroy(struct urdma_sim *sim);

/*
 * One clock cycle. Afterwards out->still is set if the last two rising edges changed no register of
 * the NIC except its cycle counter. Then the same inputs change none in later cycles either, except
 * by time; out reports the next such moment as the timer. So a still NIC needs no clock until an
 * input changes, or until shortly before its timer, if skip_cycles then tells it the time that has
 * passed.
 *
 * Still parts of the NIC get no clock (parts.h). This changes no result. With in->all_parts all
 * parts get each clock, and out->surprise names a part that changed in a clock that it would have
 * missed.
 */
void urdma_sim_cycle(struct urdma_sim *sim, const struct urdma_sim_in *in,
		     struct urdma_sim_out *out);

/* Clock cycles evaluated since creation, without skipped ones. */
uint64_t urdma_sim_cycles(const struct urdma_sim *sim);

/*
 * The NIC's counter registers as of now, URDMA_CNT_N of urdma_hw.h, without an access that the NIC
 * would see.
 */
void urdma_sim_counters(const struct urdma_sim *sim, uint64_t *values);

/* Whether this library was built with URDMA_TRACE, which waves need. */
bool urdma_sim_has_waves(void);
/*
 * Whether the waves of the instance `scope` (its name in urdma_sim_top, as "nic.tx") can be written
 * alone. Returns 0, or -ENOENT and in `why` the reason, with the names that exist. Without
 * URDMA_TRACE returns -ENOTSUP, and `why` is empty.
 */
int urdma_sim_check_scope(const char *scope, char *why, size_t size);

/*
 * Begins an FST file of the signals of the instance `scope` (its full name, as
 * "urdma0.urdma_sim_top.nic.tx" in a model that was created as urdma0; NULL: of all instances).
 * urdma_sim_check_scope() must have confirmed that the instance exists. The file ends with the next
 * call, with a call with path NULL, or with the model. `cycle` is the next cycle: the file begins
 * or ends with the values at that time, even if the NIC is not clocked before. Returns 0, -ENOTSUP
 * without URDMA_TRACE, or another negative errno: the new file cannot be written, or with path NULL
 * the file that ends is not whole. Beside DIR/x.fst it writes DIR/x.gtkw and DIR/x.sucl, with which
 * GTKWave and Surfer show the most important signals first (view.h).
 *
 * Time in the file is in ns. The clock edge that begins cycle n is at 4 n: from there on outputs
 * and registers have their values of that cycle. Its inputs follow at 4 n + 1. Skipped cycles are
 * in the file as time that passes.
 */
int urdma_sim_waves(struct urdma_sim *sim, const char *path, const char *scope, uint64_t cycle);
/* Between a pause and its end nothing is written. */
void urdma_sim_pause_waves(struct urdma_sim *sim, bool pause);

#ifdef __cplusplus
}
#endif

#endif
