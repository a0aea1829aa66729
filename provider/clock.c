// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: the NIC's clock, and the wall-clock time of completions.
 *
 * A CQE has the cycle in which it was written. To convert that cycle to a time, the provider reads
 * both clocks with a system call and extrapolates. It reads them again when the last reading is
 * old, because the clocks drift: the host's clock may be set, and a simulated NIC's clock is slow.
 */
#include <errno.h>
#include <time.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "urdma.h"

#define URDMA_NS 1000000000ull
/* A reading of the clocks is valid for this number of nanoseconds. */
#define URDMA_CLOCK_PERIOD 10000000ull

static int urdma_read_cycles(struct ibv_context *ctx, uint64_t *cycles)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE, URDMA_METHOD_QUERY_CLOCK, 1);

	fill_attr_out(cmd, URDMA_ATTR_QUERY_CLOCK_CYCLES, cycles, sizeof(*cycles));
	return execute_ioctl(ctx, cmd);
}

/* In cycles, like the timestamp of a completion. */
int urdma_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	uint32_t want = values->comp_mask;
	uint64_t cycles;
	int err;

	values->comp_mask = 0;
	if (!(want & IBV_VALUES_MASK_RAW_CLOCK))
		return EINVAL;
	err = urdma_read_cycles(ctx, &cycles);
	if (err)
		return err;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = cycles;
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

static uint64_t urdma_host_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * URDMA_NS + t.tv_nsec;
}

/* The host's clock is read after the NIC's, so no completion gets a time before it was written. */
static int urdma_clock_sync(struct ibv_context *ctx, struct urdma_clock *clock)
{
	uint64_t cycles;
	int err = urdma_read_cycles(ctx, &cycles);

	if (err)
		return err;
	clock->cycles = cycles;
	clock->wall_ns = urdma_host_ns(CLOCK_REALTIME);
	clock->read_ns = urdma_host_ns(CLOCK_MONOTONIC);
	return 0;
}

int urdma_clock_init(struct ibv_context *ctx, struct urdma_clock *clock)
{
	struct ib_uverbs_ex_query_device_resp resp = {};
	struct ibv_device_attr_ex attr = {};
	size_t resp_size = sizeof(resp);
	int err;

	err = ibv_cmd_query_device_any(ctx, NULL, &attr, sizeof(attr), &resp, &resp_size);
	if (err)
		return err;
	if (!attr.hca_core_clock)
		return EOPNOTSUPP;
	clock->khz = attr.hca_core_clock;
	return urdma_clock_sync(ctx, clock);
}

/* Cycles have 63 bits. If the device is dead, the last reading is used. */
uint64_t urdma_clock_wall_ns(struct ibv_context *ctx, struct urdma_clock *clock, uint64_t cycles)
{
	const int64_t khz = clock->khz;
	int64_t after;

	if (urdma_host_ns(CLOCK_MONOTONIC) - clock->read_ns > URDMA_CLOCK_PERIOD)
		urdma_clock_sync(ctx, clock);
	after = (int64_t)((cycles - clock->cycles) << 1) >> 1;
	return clock->wall_ns + after / khz * 1000000 + after % khz * 1000000 / khz;
}
