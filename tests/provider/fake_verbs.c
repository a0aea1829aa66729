// SPDX-License-Identifier: Apache-2.0
#include "fake_verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>

#include "fake_nic.h"

/* Numbers that a NIC could give: QPs from 2, because 0 and 1 are special. */
#define FIRST_QPN 2

const struct verbs_context_ops *fake_ops;
int fake_error;
int fake_dmabuf_fd;
uint32_t fake_next_qpn, fake_next_srqn;
uint32_t fake_create_flags;
uint32_t fake_cq_flags;
struct ibv_moderate_cq fake_moderation;
int fake_members;
int fake_dms;

/* The file of a context. */
#define FILE_NAME  "doorbells"
#define FILE_BYTES (FAKE_DOORBELL_BYTES + FAKE_DM_BYTES)

static const struct verbs_device_ops *driver;
static struct verbs_device *device;
static uint8_t *doorbells;
static uint32_t next_cqn, next_key, next_pd;

/* ---- libibverbs ------------------------------------------------------------------------------ */

void verbs_register_driver(const struct verbs_device_ops *ops)
{
	driver = ops;
}

void verbs_set_ops(struct verbs_context *vctx, const struct verbs_context_ops *ops)
{
	struct ibv_context_ops *ctx_ops = &vctx->context.ops;

	fake_ops = ops;
	ctx_ops->poll_cq = ops->poll_cq;
	ctx_ops->post_recv = ops->post_recv;
	ctx_ops->post_send = ops->post_send;
	ctx_ops->post_srq_recv = ops->post_srq_recv;
	ctx_ops->req_notify_cq = ops->req_notify_cq;
}

void *_verbs_init_and_alloc_context(struct ibv_device *dev, int cmd_fd, size_t alloc_size,
				    struct verbs_context *context_offset, uint32_t driver_id)
{
	uint8_t *ctx = calloc(1, alloc_size);
	struct verbs_context *vctx = (void *)(ctx + (uintptr_t)context_offset);

	vctx->context.device = dev;
	vctx->context.cmd_fd = cmd_fd;
	return ctx;
}

void verbs_uninit_context(struct verbs_context *vctx)
{
	close(vctx->context.cmd_fd);
}

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

struct ibv_context *fake_open(void)
{
	struct verbs_context *vctx;
	int fd = memfd_create(FILE_NAME, 0);

	next_cqn = 0;
	fake_dms = 0;
	fake_next_srqn = 0;
	fake_next_qpn = FIRST_QPN;
	next_key = 0;
	if (fd < 0 || ftruncate(fd, FILE_BYTES))
		abort();
	doorbells = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (doorbells == MAP_FAILED)
		abort();
	device = driver->alloc_device(NULL);
	vctx = driver->alloc_context(&device->device, fd, NULL);
	if (vctx)
		return &vctx->context;
	driver->uninit_device(device);
	munmap(doorbells, FILE_BYTES);
	return NULL;
}

void fake_close(struct ibv_context *ctx)
{
	fake_ops->free_context(ctx);
	driver->uninit_device(device);
	munmap(doorbells, FILE_BYTES);
}

uint64_t *fake_doorbell(uint32_t offset)
{
	return (uint64_t *)(doorbells + offset);
}

uint8_t *fake_dm(void)
{
	return doorbells + FAKE_DOORBELL_BYTES;
}

/* The number of mapped pages of the file, and its last mapping at that offset. */
static unsigned int look_for_mappings(unsigned long offset, void **found)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, from;
	unsigned int n = 0;
	char line[512];

	if (!maps)
		abort();
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/memfd:" FILE_NAME))
			continue;
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &from) != 3)
			abort();
		n += (end - start) / FAKE_PAGE;
		if (from == offset)
			*found = (void *)start;
	}
	fclose(maps);
	return n;
}

void *fake_dm_mapped(void)
{
	void *found = NULL;

	look_for_mappings(FAKE_DOORBELL_BYTES, &found);
	return found;
}

unsigned int fake_pages_mapped(void)
{
	void *found;

	return look_for_mappings(0, &found);
}

/* ---- commands to the kernel ------------------------------------------------------------------ */

int ibv_cmd_get_context(struct verbs_context *context, struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp, size_t resp_size)
{
	if (!fake_error)
		fake_nic_context(resp);
	return fake_error;
}

int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp, size_t *resp_size)
{
	resp->base.fw_ver = UINT64_C(0x000100020003);
	attr->hca_core_clock = FAKE_KHZ;
	return fake_error;
}

int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num,
		       struct ibv_port_attr *port_attr, struct ibv_query_port *cmd, size_t cmd_size)
{
	return fake_error;
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd, struct ibv_alloc_pd *cmd,
		     size_t cmd_size, struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	pd->context = context;
	pd->handle = next_pd++;
	return fake_error;
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	return fake_error;
}

int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access,
		   struct verbs_mr *vmr, struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size)
{
	vmr->access = access;
	vmr->ibv_mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.lkey = ++next_key << 8,
	};
	vmr->ibv_mr.rkey = vmr->ibv_mr.lkey;
	return fake_error;
}

int ibv_cmd_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
			  int access, struct verbs_mr *vmr, struct ibv_command_buffer *driver)
{
	fake_dmabuf_fd = fd;
	return ibv_cmd_reg_mr(pd, (void *)(uintptr_t)(iova - offset), length, iova, access, vmr,
			      NULL, 0, NULL, 0);
}

int ibv_cmd_rereg_mr(struct verbs_mr *vmr, uint32_t flags, void *addr, size_t length,
		     uint64_t hca_va, int access, struct ibv_pd *pd, struct ibv_rereg_mr *cmd,
		     size_t cmd_sz, struct ib_uverbs_rereg_mr_resp *resp, size_t resp_sz)
{
	return fake_error;
}

int ibv_cmd_query_mr(struct ibv_pd *pd, struct verbs_mr *vmr, uint32_t mr_handle)
{
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.lkey = mr_handle << 8;
	vmr->ibv_mr.rkey = mr_handle << 8;
	return fake_error;
}

int ibv_cmd_dereg_mr(struct verbs_mr *vmr)
{
	return fake_error;
}

int ibv_cmd_alloc_dm(struct ibv_context *ctx, const struct ibv_alloc_dm_attr *dm_attr,
		     struct verbs_dm *dm, struct ibv_command_buffer *link)
{
	if (fake_error)
		return fake_error;
	dm->dm.context = ctx;
	dm->dm.handle = dm->handle = 0x70 + (uint32_t)fake_dms++;
	dm->dm.comp_mask = IBV_DM_MASK_HANDLE;
	fake_nic_alloc_dm(dm_attr->length, link);
	return 0;
}

int ibv_cmd_free_dm(struct verbs_dm *dm)
{
	if (!fake_error)
		fake_dms--;
	return fake_error;
}

int ibv_cmd_reg_dm_mr(struct ibv_pd *pd, struct verbs_dm *dm, uint64_t offset, size_t length,
		      unsigned int access, struct verbs_mr *vmr, struct ibv_command_buffer *link)
{
	vmr->ibv_mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.length = length,
		.lkey = ++next_key << 8,
	};
	vmr->ibv_mr.rkey = vmr->ibv_mr.lkey;
	return fake_error;
}

int execute_ioctl(struct ibv_context *context, struct ibv_command_buffer *cmd)
{
	if (!fake_error)
		fake_nic_ioctl(cmd);
	return fake_error;
}

int ibv_cmd_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw *mw,
		     struct ibv_alloc_mw *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_mw_resp *resp, size_t resp_size)
{
	*mw = (struct ibv_mw){
		.context = pd->context,
		.pd = pd,
		.rkey = ++next_key << 8,
		.type = type,
	};
	return fake_error;
}

int ibv_cmd_dealloc_mw(struct ibv_mw *mw)
{
	return fake_error;
}

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah, struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
	if (fake_error)
		return fake_error;
	ah->context = pd->context;
	ah->pd = pd;
	fake_nic_create_ah(attr, resp);
	return 0;
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	return fake_error;
}

int ibv_cmd_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel,
		      int comp_vector, struct ibv_cq *cq, struct ibv_create_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_create_cq_resp *resp, size_t resp_size)
{
	if (fake_error)
		return fake_error;
	cq->context = context;
	cq->channel = channel;
	cq->cqe = cqe;
	cq->handle = next_cqn;
	fake_nic_create_cq(cmd, resp, next_cqn++);
	return 0;
}

int ibv_cmd_create_cq_ex(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct ibv_create_cq_ex *cmd, size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp, size_t resp_size,
			 uint32_t cmd_flags)
{
	if (fake_error)
		return fake_error;
	cq->cq.context = context;
	cq->cq.channel = attr->channel;
	cq->cq.cqe = attr->cqe;
	fake_cq_flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	cq->cq.handle = next_cqn;
	fake_nic_create_cq(cmd, resp, next_cqn++);
	return 0;
}

int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe, struct ibv_resize_cq *cmd, size_t cmd_size,
		      struct ib_uverbs_resize_cq_resp *resp, size_t resp_size)
{
	int err = fake_error;

	if (!err)
		err = fake_nic_resize_cq(cmd, resp, cq->handle);
	/* set meanwhile: the device dies after the command */
	if (!err)
		err = fake_error;
	if (!err)
		cq->cqe = cqe;
	return err;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr, struct ibv_modify_cq *cmd,
		      size_t cmd_size)
{
	fake_moderation = attr->moderate;
	return fake_error;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	return fake_error;
}

int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq, struct ibv_srq_init_attr *attr,
		       struct ibv_create_srq *cmd, size_t cmd_size,
		       struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	if (fake_error)
		return fake_error;
	srq->context = pd->context;
	srq->pd = pd;
	srq->handle = fake_next_srqn;
	fake_nic_create_srq(cmd, resp, fake_next_srqn++);
	return 0;
}

/* The same for SRQs of other types, through a command with a longer head. */
int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr, struct ibv_create_xsrq *cmd,
			  size_t cmd_size, struct ib_uverbs_create_srq_resp *resp, size_t resp_size)
{
	struct {
		struct ibv_create_srq core;
		uint8_t driver[64];
	} plain = { 0 };

	if (fake_error)
		return fake_error;
	if (attr->srq_type != IBV_SRQT_XRC || !attr->xrcd || !attr->cq)
		abort();
	memcpy(plain.driver, cmd + 1, cmd_size - sizeof(*cmd));
	srq->srq.context = context;
	srq->srq.handle = fake_next_srqn;
	srq->srq_type = attr->srq_type;
	srq->xrcd = container_of(attr->xrcd, struct verbs_xrcd, xrcd);
	srq->cq = attr->cq;
	srq->srq_num = fake_next_srqn;
	fake_nic_create_srq(&plain, resp, fake_next_srqn++);
	return 0;
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd, int vxrcd_size,
		      struct ibv_xrcd_init_attr *attr, struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	xrcd->xrcd.context = context;
	return fake_error;
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	return fake_error;
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask,
		       struct ibv_modify_srq *cmd, size_t cmd_size)
{
	return fake_error;
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, struct ibv_query_srq *cmd,
		      size_t cmd_size)
{
	return fake_error;
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	return fake_error;
}

int ibv_cmd_create_qp(struct ibv_pd *pd, struct ibv_qp *qp, struct ibv_qp_init_attr *attr,
		      struct ibv_create_qp *cmd, size_t cmd_size,
		      struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	if (fake_error)
		return fake_error;
	qp->context = pd->context;
	qp->pd = pd;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_type = attr->qp_type;
	qp->state = IBV_QPS_RESET;
	qp->qp_num = fake_next_qpn;
	fake_nic_create_qp(cmd, resp, fake_next_qpn++);
	return 0;
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
			 struct ibv_qp_init_attr_ex *attr, struct ibv_create_qp *cmd,
			 size_t cmd_size, struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	struct ibv_qp_init_attr plain = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.qp_type = attr->qp_type,
	};

	if (attr->qp_type != IBV_QPT_XRC_RECV)
		return ibv_cmd_create_qp(attr->pd, &qp->qp, &plain, cmd, cmd_size, resp, resp_size);
	/* The NIC's driver sees neither command nor response. */
	if (!fake_error)
		qp->qp = (struct ibv_qp){ .context = context,
					  .qp_type = attr->qp_type,
					  .qp_num = fake_next_qpn++ };
	return fake_error;
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp, int vqp_sz,
		    struct ibv_qp_open_attr *attr, struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	qp->qp = (struct ibv_qp){ .context = context,
				  .qp_type = attr->qp_type,
				  .state = IBV_QPS_UNKNOWN,
				  .qp_num = attr->qp_num };
	return fake_error;
}

/* The same with flags. The NIC's driver reads and writes after another head. */
int ibv_cmd_create_qp_ex2(struct ibv_context *context, struct verbs_qp *qp,
			  struct ibv_qp_init_attr_ex *attr, struct ibv_create_qp_ex *cmd,
			  size_t cmd_size, struct ib_uverbs_ex_create_qp_resp *resp,
			  size_t resp_size)
{
	struct {
		struct ibv_create_qp core;
		uint8_t driver[64];
	} plain_cmd = { 0 };
	struct {
		struct ib_uverbs_create_qp_resp core;
		uint8_t driver[64];
	} plain_resp = { 0 };
	int err;

	memcpy(plain_cmd.driver, cmd + 1, cmd_size - sizeof(*cmd));
	fake_create_flags = attr->create_flags;
	err = ibv_cmd_create_qp_ex(context, qp, attr, &plain_cmd.core,
				   sizeof(plain_cmd.core) + cmd_size - sizeof(*cmd),
				   &plain_resp.core,
				   sizeof(plain_resp.core) + resp_size - sizeof(*resp));
	memcpy(resp + 1, plain_resp.driver, resp_size - sizeof(*resp));
	return err;
}

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!fake_error)
		fake_members++;
	return fake_error;
}

int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!fake_error)
		fake_members--;
	return fake_error;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		      struct ibv_modify_qp *cmd, size_t cmd_size)
{
	if (!fake_error && attr_mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	return fake_error;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *qp_attr, int attr_mask,
		     struct ibv_qp_init_attr *qp_init_attr, struct ibv_query_qp *cmd,
		     size_t cmd_size)
{
	qp_attr->qp_state = qp->state;
	return fake_error;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	return fake_error;
}

/* Importing a context goes through ioctl(), which is not faked. */
int ibv_cmd_query_context(struct ibv_context *context, struct ibv_command_buffer *driver)
{
	return EOPNOTSUPP;
}
