// SPDX-License-Identifier: Apache-2.0
#include "trace/events.h"

#include <assert.h>

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

/* Where the members of each lane's type begin: the number of the bit. */
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

/* The list has every lane at its number, and every member of its type. */
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
