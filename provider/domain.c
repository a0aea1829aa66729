// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: protection domains, parent domains, thread domains, and objects imported from
 * another user of the same context.
 *
 * To the kernel a parent domain is the PD in it. A parent domain may have an allocator for the
 * rings of its objects. Both kinds of PD count their users here, because the kernel cannot tell
 * them apart. Objects created with a parent domain that has a thread domain are not locked.
 */
#include <errno.h>
#include <stdlib.h>

#include "urdma.h"

void urdma_pd_get(struct ibv_pd *pd)
{
	atomic_fetch_add(&to_upd(pd)->users, 1);
}

void urdma_pd_put(struct ibv_pd *pd)
{
	/* An imported PD may be released before the objects created with it. */
	if (atomic_fetch_sub(&to_upd(pd)->users, 1) == 1 && to_upd(pd)->imported)
		free(to_upd(pd));
}

/* Only one thread at a time uses objects created with it. */
bool urdma_pd_has_td(const struct ibv_pd *pd)
{
	return container_of(pd, const struct urdma_pd, ibv_pd)->td;
}

struct ibv_pd *urdma_alloc_pd(struct ibv_context *ctx)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct urdma_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(ctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->ibv_pd;
}

static int urdma_dealloc_parent(struct urdma_pd *parent)
{
	urdma_pd_put(parent->contained);
	if (parent->td)
		atomic_fetch_sub(&parent->td->users, 1);
	free(parent);
	return 0;
}

int urdma_dealloc_pd(struct ibv_pd *ibpd)
{
	struct urdma_pd *pd = to_upd(ibpd);
	int err;

	/*
	 * An import counts as a user. Deallocating the import ends the PD, which its creator may
	 * have left.
	 */
	if (atomic_load(&pd->users) > pd->imported)
		return EBUSY;
	if (pd->contained)
		return urdma_dealloc_parent(pd);
	err = ibv_cmd_dealloc_pd(ibpd);
	if (err)
		return err;
	free(pd);
	return 0;
}

struct ibv_pd *urdma_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct urdma_pd *parent;

	/* sets errno */
	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	if (!check_comp_mask(attr->comp_mask, known)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->pd->context != ctx || (attr->td && attr->td->context != ctx) ||
	    to_upd(attr->pd)->contained ||
	    (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	     (!attr->alloc || !attr->free))) {
		errno = EINVAL;
		return NULL;
	}
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return NULL;
	ibv_initialize_parent_domain(&parent->ibv_pd, attr->pd);
	parent->contained = attr->pd;
	urdma_pd_get(attr->pd);
	if (attr->td) {
		parent->td = to_utd(attr->td);
		atomic_fetch_add(&parent->td->users, 1);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		parent->alloc = attr->alloc;
		parent->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->pd_context = attr->pd_context;
	return &parent->ibv_pd;
}

struct ibv_td *urdma_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct urdma_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ctx;
	return &td->ibv_td;
}

int urdma_dealloc_td(struct ibv_td *ibtd)
{
	struct urdma_td *td = to_utd(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

/* The PD belongs to another user and is not destroyed when it is released here. */
struct ibv_pd *urdma_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	struct urdma_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv_pd.context = ctx;
	pd->ibv_pd.handle = handle;
	pd->imported = true;
	urdma_pd_get(&pd->ibv_pd);
	return &pd->ibv_pd;
}

void urdma_unimport_pd(struct ibv_pd *ibpd)
{
	urdma_pd_put(ibpd);
}

struct ibv_mr *urdma_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_query_mr(pd, vmr, handle);
	return urdma_mr_made(pd, vmr, err);
}

void urdma_unimport_mr(struct ibv_mr *mr)
{
	urdma_pd_put(mr->pd);
	free(verbs_get_mr(mr));
}
