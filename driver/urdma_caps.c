// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma: the NIC's version and capability registers. */
#include <linux/if_ether.h>

#include "urdma.h"

static int urdma_read_eth_caps(struct urdma_dev *dev)
{
	struct urdma_caps *caps = &dev->caps;
	u32 log_cq;
	u64 eth;

	if (!(caps->features & URDMA_RF_FEAT_ETH))
		return 0;
	eth = urdma_read(dev, URDMA_REG_CAP_ETH);
	caps->eth_queues = FIELD_GET(URDMA_RF_CAP_ETH_QUEUES, eth);
	caps->eth_max_frame = FIELD_GET(URDMA_RF_CAP_ETH_MAX_FRAME, eth);
	caps->eth_tx_descs = FIELD_GET(URDMA_RF_CAP_ETH_TX_DESCS, eth);
	caps->eth_uc = FIELD_GET(URDMA_RF_CAP_ETH_UC, eth);
	/* Indexes have 16 bits; a completion ring has four times the entries of the larger one. */
	log_cq = FIELD_GET(URDMA_RF_CAP_LOG_ETH_CQ, eth);
	caps->log_eth_ring = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_ETH_RING, eth), 15);
	if (caps->log_eth_ring + 2 > log_cq)
		caps->log_eth_ring = log_cq < 2 ? 0 : log_cq - 2;
	/* At most as many as have registers. */
	caps->eth_queues = min_t(u32, caps->eth_queues, URDMA_ETH_MAX_QUEUES);
	caps->eth_uc = min_t(u32, caps->eth_uc, URDMA_ETH_MAX_UC);
	if (!caps->eth_queues || caps->log_eth_ring < URDMA_ETH_LOG_MIN || !caps->eth_tx_descs ||
	    caps->eth_max_frame < ETH_FRAME_LEN || caps->num_vectors < 3 ||
	    pci_resource_len(dev->pdev, URDMA_BAR_REGS) <
		    URDMA_REG_ETHQ + (u64)caps->eth_queues * URDMA_ETHQ_STRIDE) {
		dev_err(&dev->pdev->dev, "impossible Ethernet capabilities: %#llx\n", eth);
		return -ENODEV;
	}
	return 0;
}

/* Processes map it, so it must be whole pages. If the BAR cannot hold it, it is not used. */
static void urdma_read_dm_caps(struct urdma_dev *dev)
{
	struct urdma_caps *caps = &dev->caps;
	u64 bar = pci_resource_len(dev->pdev, URDMA_BAR_DB);
	u64 log, log_offset, dm;

	if (!(caps->features & URDMA_RF_FEAT_DM))
		return;
	dm = urdma_read(dev, URDMA_REG_CAP_DM);
	log = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_DM, dm), URDMA_MAX_LOG_DM);
	log_offset = FIELD_GET(URDMA_RF_CAP_LOG_DM_OFFSET, dm);
	if (log < PAGE_SHIFT || log_offset > 62 ||
	    BIT_ULL(log_offset) < (u64)caps->num_db_pages << PAGE_SHIFT ||
	    BIT_ULL(log_offset) + BIT_ULL(log) > bar) {
		dev_warn(&dev->pdev->dev,
			 "device memory of 2^%llu bytes at 2^%llu does not fit BAR %d of %#llx: not used\n",
			 log, log_offset, URDMA_BAR_DB, bar);
		caps->features &= ~URDMA_RF_FEAT_DM;
		return;
	}
	caps->dm_pages = BIT(log - PAGE_SHIFT);
	caps->dm_offset = BIT_ULL(log_offset);
}

/*
 * A set number has 16 bits. Set 0 counts since version 1.12; without it the port's counters would
 * miss the QPs that have no counter.
 */
static void urdma_read_cnt_caps(struct urdma_dev *dev)
{
	struct urdma_caps *caps = &dev->caps;
	u64 log;

	if (!(caps->features & URDMA_RF_FEAT_QP_CNT) || caps->version_minor < 12)
		return;
	log = FIELD_GET(URDMA_RF_CAP_LOG_CNT_SETS, urdma_read(dev, URDMA_REG_CAP_CNT));
	if (log)
		caps->num_cnt_sets = 1U << min_t(u64, log, 16);
}

/* Every limit that the driver observes, reduced to what the layouts can hold. */
int urdma_read_caps(struct urdma_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	struct urdma_caps *caps = &dev->caps;
	u64 version = urdma_read(dev, URDMA_REG_VERSION);
	u64 obj, queue, xport;
	u32 log_db_page;

	if (FIELD_GET(URDMA_RF_VERSION_MAGIC, version) != URDMA_MAGIC) {
		dev_err(d, "not a urdma: version register %#llx\n", version);
		return -ENODEV;
	}
	if (FIELD_GET(URDMA_RF_VERSION_MAJOR, version) != URDMA_VERSION_MAJOR) {
		dev_err(d, "contract version %llu.%llu, this driver knows %u\n",
			FIELD_GET(URDMA_RF_VERSION_MAJOR, version),
			FIELD_GET(URDMA_RF_VERSION_MINOR, version), URDMA_VERSION_MAJOR);
		return -ENODEV;
	}
	caps->version_minor = FIELD_GET(URDMA_RF_VERSION_MINOR, version);

	obj = urdma_read(dev, URDMA_REG_CAP_OBJ);
	queue = urdma_read(dev, URDMA_REG_CAP_QUEUE);
	xport = urdma_read(dev, URDMA_REG_CAP_XPORT);
	caps->page_sizes = urdma_read(dev, URDMA_REG_CAP_PAGES);
	caps->features = urdma_read(dev, URDMA_REG_CAP_FEATURES);
	caps->clock_hz = urdma_read(dev, URDMA_REG_CLOCK_HZ);
	caps->speed_mbps = urdma_read(dev, URDMA_REG_PORT_SPEED);

	/* Object numbers and the index in a key have 24 bits; doorbell page numbers have 12. */
	caps->log_qp = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_QP, obj), 24);
	caps->num_qp = 1U << caps->log_qp;
	if (caps->features & URDMA_RF_FEAT_SRQ && FIELD_GET(URDMA_RF_CAP_LOG_SRQ, obj))
		caps->num_srq = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_SRQ, obj), 24);
	/* XRC needs SRQs. */
	if (!caps->num_srq)
		caps->features &= ~URDMA_RF_FEAT_XRC;
	caps->num_cq = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_CQ, obj), 24);
	caps->num_mr = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_MR, obj), 24);
	caps->num_eq = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_EQ, obj), ilog2(URDMA_MAX_EQS));
	caps->num_pd = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_PD, obj), 16);
	caps->num_db_pages = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_DB_PAGES, obj), 12);
	caps->num_vectors = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_VECTORS, obj), 6);

	caps->max_sq_sge = FIELD_GET(URDMA_RF_CAP_MAX_SQ_SGE, queue);
	caps->max_rq_sge = FIELD_GET(URDMA_RF_CAP_MAX_RQ_SGE, queue);
	caps->max_inline = FIELD_GET(URDMA_RF_CAP_MAX_INLINE, queue);
	caps->max_sq_sge =
		min_t(u32, caps->max_sq_sge,
		      ((1 << URDMA_MAX_WQE_LOG) - URDMA_SQE_DATA_OFFSET) / URDMA_SGE_SIZE);
	caps->max_rq_sge =
		min_t(u32, caps->max_rq_sge,
		      ((1 << URDMA_MAX_WQE_LOG) - URDMA_RQE_DATA_OFFSET) / URDMA_SGE_SIZE);
	caps->max_inline =
		min_t(u32, caps->max_inline, (1 << URDMA_MAX_WQE_LOG) - URDMA_SQE_DATA_OFFSET);
	/* Work queue indexes have 16 bits, and a full ring must differ from an empty one. */
	caps->log_sq = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_SQ, queue), 15);
	caps->log_rq = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_RQ, queue), 15);
	caps->log_cqe = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_CQE, queue), 24);
	caps->log_eqe = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_EQE, queue), 24);

	caps->log_max_msg = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_MAX_MSG, xport), 31);
	/* enum ib_mtu: 256 bytes are 1 */
	caps->max_mtu = clamp_t(int, FIELD_GET(URDMA_RF_CAP_LOG_MAX_MTU, xport) - 7, IB_MTU_256,
				IB_MTU_4096);
	caps->num_gids = FIELD_GET(URDMA_RF_CAP_GIDS, xport);
	caps->max_rd_atomic = FIELD_GET(URDMA_RF_CAP_MAX_RD_ATOMIC, xport);
	caps->log_cmdq = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_CMDQ, xport), 15);
	log_db_page = FIELD_GET(URDMA_RF_CAP_LOG_DB_PAGE_SIZE, xport);

	/* Page table entries stand for 4 KB to 2 GB; a context maps exactly one doorbell page. */
	caps->page_sizes &= GENMASK_ULL(31, PAGE_SHIFT);
	if (log_db_page != PAGE_SHIFT || !(caps->page_sizes & PAGE_SIZE)) {
		dev_err(d,
			"pages of %lu bytes do not fit the device (doorbells %u, memory %#llx)\n",
			PAGE_SIZE, 1U << log_db_page, caps->page_sizes);
		return -ENODEV;
	}
	if (caps->num_qp <= URDMA_FIRST_QPN || caps->num_mr <= URDMA_FIRST_MR || caps->num_eq < 2 ||
	    caps->num_vectors < 2 || caps->num_db_pages < 2 || !caps->max_sq_sge ||
	    !caps->max_rq_sge || !caps->num_gids || !caps->log_cmdq || caps->log_cqe < 4 ||
	    caps->log_eqe < 4) {
		dev_err(d, "impossible capabilities: %#llx %#llx %#llx\n", obj, queue, xport);
		return -ENODEV;
	}
	if (pci_resource_len(dev->pdev, URDMA_BAR_DB) < (u64)caps->num_db_pages << PAGE_SHIFT) {
		dev_err(d, "BAR %d is too small for %u doorbell pages\n", URDMA_BAR_DB,
			caps->num_db_pages);
		return -ENODEV;
	}
	urdma_read_dm_caps(dev);
	urdma_read_cnt_caps(dev);
	return urdma_read_eth_caps(dev);
}
