// SPDX-License-Identifier: Apache-2.0
#include "trace/events.h"

#include <assert.h>

#include "pcie/root.h"
#include "urdma_trace_pkg.h"

#define LANE(kind, name)         \
	[URDMA_TRACE_##kind] = { \
		#name, sizeof(((struct urdma_trace_event *)0)->name) / sizeof(uint64_t), {
#define EVENT(kind, name)	  LANE(kind, name)
#define BITS(name, member, width) { #member, width },
#define FIELD(name, member)	  BITS(name, member, tr_##name##_t_##member##_W)
#define END(name) \
	}         \
	}         \
	,
const struct urdma_trace_desc urdma_trace_desc[URDMA_TRACE_KINDS] = {
#include "trace/boundary.def"
#include "trace/lanes.def"
};
#undef LANE
#undef EVENT
#undef FIELD
#undef BITS
#undef END

/* The first bit of each member of each lane's type. */
static const uint8_t lsb[URDMA_TRACE_LANES][URDMA_TRACE_MAX_FIELDS] = {
#define LANE(kind, name)    [URDMA_TRACE_##kind] = {
#define FIELD(name, member) tr_##name##_t_##member##_LSB,
#define END(name) \
	}         \
	,
#include "trace/lanes.def"
#undef LANE
#undef FIELD
#undef END
};

/* Checks that the list has every lane at its number and every member of its type. */
static_assert((int)URDMA_TRACE_LANES == (int)TRACE_N, "lanes");
static_assert((int)URDMA_TRACE_LANES == (int)URDMA_SIM_LANES, "lanes of the simulator");
static_assert(sizeof(struct urdma_sim_lane) * 8 == TRACE_W, "width of a lane");
#define LANE(kind, name)                                                                 \
	static_assert((int)URDMA_TRACE_##kind == (int)TRACE_##kind, "number of " #name); \
	static_assert(0
#define FIELD(name, member) +tr_##name##_t_##member##_W
#define END(name)	    == (int)tr_##name##_t_W, "members of tr_" #name "_t");
#include "trace/lanes.def"
#undef LANE
#undef FIELD
#undef END

static uint64_t get(const struct urdma_sim_lane *data, unsigned int at,
		    const struct urdma_trace_field *field)
{
	unsigned int word = at / 32, shift = at % 32;
	uint64_t value = (uint64_t)data->w[word] >> shift;

	if (shift + field->width > 32)
		value |= (uint64_t)data->w[word + 1] << (32 - shift);
	return value & urdma_trace_max(field);
}

void urdma_trace_from_lane(struct urdma_trace_event *event, unsigned int lane,
			   const struct urdma_sim_lane *data)
{
	const struct urdma_trace_desc *desc = &urdma_trace_desc[lane];

	event->kind = (uint8_t)lane;
	for (unsigned int i = 0; i < desc->n_fields; i++)
		event->field[i] = get(data, lsb[lane][i], &desc->field[i]);
}

/* TLPs carry whole dwords. */
static uint32_t payload(uint64_t addr, uint64_t len)
{
	return ((uint32_t)(addr & 3) + (uint32_t)len + 3) / 4 * 4;
}

uint32_t urdma_trace_tlp_bytes(const struct urdma_trace_event *e, bool *to_host)
{
	*to_host = e->kind == URDMA_TRACE_RD || e->kind == URDMA_TRACE_WR ||
		   e->kind == URDMA_TRACE_IRQ || e->kind == URDMA_TRACE_REG_DONE;
	switch (e->kind) {
	case URDMA_TRACE_DB_WRITE:
		return URDMA_PCIE_TLP_BYTES + payload(e->db_write.offset, e->db_write.len);
	case URDMA_TRACE_REG_WRITE:
		return URDMA_PCIE_TLP_BYTES + payload(e->reg_write.offset, e->reg_write.len);
	case URDMA_TRACE_REG_READ:
	case URDMA_TRACE_RD:
		return URDMA_PCIE_TLP_BYTES;
	case URDMA_TRACE_REG_DONE:
		return URDMA_PCIE_CPL_BYTES + (uint32_t)e->reg_done.dwords * 4;
	case URDMA_TRACE_RD_DONE:
		return (uint32_t)e->rd_done.tlps * URDMA_PCIE_CPL_BYTES +
		       (uint32_t)e->rd_done.dwords * 4;
	case URDMA_TRACE_WR:
		return URDMA_PCIE_TLP_BYTES + payload(e->wr.addr, e->wr.len);
	case URDMA_TRACE_IRQ: /* a message: a write of one dword */
		return URDMA_PCIE_TLP_BYTES + 4;
	default:
		return 0;
	}
}
