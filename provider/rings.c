// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: memory of rings, and work queues of all kinds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "urdma.h"

/* Zeroed, cache-line-aligned memory, to be released with free(). */
void *urdma_zalloc(size_t bytes)
{
	void *p = aligned_alloc(URDMA_CACHE_LINE, bytes);

	if (p)
		memset(p, 0, bytes);
	return p;
}

static void urdma_release_ring(struct urdma_ring *ring)
{
	struct urdma_pd *domain = ring->domain;

	if (domain)
		domain->free(&domain->ibv_pd, domain->pd_context, ring->at, ring->type);
	else
		munmap(ring->at, ring->bytes);
}

/*
 * Zeroed pages for a ring; ring->bytes is rounded up to whole pages. A child of fork() does not
 * inherit them. A parent domain may have its own allocator, which may decline and let the provider
 * allocate.
 */
int urdma_alloc_ring(struct urdma_ring *ring, struct ibv_pd *pd, enum urdma_res_type type)
{
	struct urdma_pd *domain = pd ? to_upd(pd) : NULL;
	size_t page = sysconf(_SC_PAGESIZE);

	ring->bytes = align(ring->bytes, page);
	ring->domain = NULL;
	ring->at = IBV_ALLOCATOR_USE_DEFAULT;
	if (domain && domain->alloc)
		ring->at = domain->alloc(pd, domain->pd_context, ring->bytes, page, type);
	if (ring->at != IBV_ALLOCATOR_USE_DEFAULT) {
		if (!ring->at)
			return ENOMEM;
		ring->domain = domain;
		ring->type = type;
		memset(ring->at, 0, ring->bytes);
	} else {
		ring->at = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (ring->at == MAP_FAILED)
			return ENOMEM;
	}
	if (ibv_dontfork_range(ring->at, ring->bytes)) {
		urdma_release_ring(ring);
		return ENOMEM;
	}
	return 0;
}

void urdma_free_ring(struct urdma_ring *ring)
{
	ibv_dofork_range(ring->at, ring->bytes);
	urdma_release_ring(ring);
}

/* Resets the queue to empty. With the queue and its CQ locked, if other threads can use them. */
void urdma_wq_reset(struct urdma_wq *wq)
{
	wq->head = 0;
	wq->limit = wq->mask + 1;
	atomic_store(&wq->tail, 0);
}

/* A work queue of at least the given number and size of WQEs, up to the device's limits. */
int urdma_wq_init(struct urdma_wq *wq, const struct urdma_wq_shape *shape)
{
	uint32_t bytes = shape->wqe_bytes;
	uint8_t log_max = shape->log_max;
	uint32_t wr = shape->wr;
	int err;

	if (wr > 1U << log_max || bytes > 1U << URDMA_MAX_WQE_LOG)
		return EINVAL;
	wq->log = log_max > URDMA_MIN_WQ_LOG ? URDMA_MIN_WQ_LOG : log_max;
	while (1U << wq->log < wr)
		wq->log++;
	wq->mask = (1U << wq->log) - 1;
	wq->log_stride = URDMA_MIN_WQE_LOG;
	while (1U << wq->log_stride < bytes)
		wq->log_stride++;
	wq->stride = 1U << wq->log_stride;
	urdma_wq_reset(wq);

	wq->wr_id = calloc(1U << wq->log, sizeof(*wq->wr_id));
	if (!wq->wr_id)
		return ENOMEM;
	wq->mem.bytes =
		((size_t)1 << (wq->log + wq->log_stride)) + ((size_t)shape->more << wq->log);
	err = urdma_alloc_ring(&wq->mem, shape->pd, shape->type);
	if (err) {
		free(wq->wr_id);
		return err;
	}
	wq->ring = wq->mem.at;
	urdma_lock_init(&wq->lock, !urdma_pd_has_td(shape->pd));
	return 0;
}

/* A queue that accepts no WQE: the slot to post to is always in use. */
void urdma_wq_init_closed(struct urdma_wq *wq)
{
	wq->mask = UINT16_MAX;
	urdma_lock_init(&wq->lock, true);
}

void urdma_wq_uninit(struct urdma_wq *wq)
{
	urdma_lock_destroy(&wq->lock);
	if (!wq->ring)
		return;
	urdma_free_ring(&wq->mem);
	free(wq->wr_id);
}

void urdma_wq_set_doorbell(struct urdma_wq *wq, void *db, uint32_t obj)
{
	wq->db = db;
	wq->db_word = FIELD_PREP(URDMA_DBW_OBJ, (uint64_t)obj);
}

/* Number of SGEs that fit a receive WQE. */
uint32_t urdma_rq_max_sge(const struct urdma_context *ctx, const struct urdma_wq *rq)
{
	return min_u32((rq->stride - URDMA_RQE_DATA_OFFSET) / URDMA_SGE_SIZE, ctx->max_rq_sge);
}
