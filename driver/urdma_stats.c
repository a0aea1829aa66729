// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: the counters of the NIC. Those of RDMA are among the statistics of the RDMA port, those of
 * Ethernet among the net device's (ethtool -S). Those of PCIe, commands and caches are in debugfs
 * alone, where all are (urdma/<PCI address>/counters). All count from power-up
 * or the last reset of the function. Those of QPs (urdma_counter.c) count from their binding.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "urdma_eth.h"

#define URDMA_STAT(cnt_, name_) { .name = (name_), .priv = (void *)(uintptr_t)URDMA_CNT_##cnt_ }
/* In the order of URDMA_QCNT_*. */
#define URDMA_QP_STAT(cnt_, name_)                                             \
	{                                                                      \
		.name = (name_), .priv = (void *)(uintptr_t)URDMA_QCNT_##cnt_, \
		.flags = IB_STAT_FLAG_OPTIONAL                                 \
	}

static const struct rdma_stat_desc urdma_rdma_stats[] = {
	URDMA_STAT(TX_RDMA_PKTS, "tx_rdma_pkts"),
	URDMA_STAT(RX_RDMA_PKTS, "rx_rdma_pkts"),
	URDMA_STAT(RX_ICRC_ERR, "rx_icrc_err"),
	URDMA_STAT(RX_MALFORMED, "rx_malformed"),
	URDMA_STAT(RX_DROP_FULL, "rx_drop_full"),
	URDMA_STAT(RX_NO_QP, "rx_no_qp"),
	URDMA_STAT(RX_SEQ_ERR, "rx_seq_err"),
	URDMA_STAT(RX_DUP, "rx_dup"),
	URDMA_STAT(TX_ACK, "tx_ack"),
	URDMA_STAT(TX_NAK_SEQ, "tx_nak_seq"),
	URDMA_STAT(TX_NAK_RNR, "tx_nak_rnr"),
	URDMA_STAT(TX_NAK_OTHER, "tx_nak_other"),
	URDMA_STAT(RX_ACK, "rx_ack"),
	URDMA_STAT(RX_NAK, "rx_nak"),
	URDMA_STAT(RX_NAK_RNR, "rx_nak_rnr"),
	URDMA_STAT(DB_OK, "db_ok"),
	URDMA_STAT(DB_OWNER, "db_owner"),
	URDMA_STAT(DB_BAD, "db_bad"),
	URDMA_STAT(CQE, "cqe"),
	URDMA_STAT(CQ_OVERFLOW, "cq_overflow"),
	URDMA_STAT(MR_ERR, "mr_err"),
	URDMA_STAT(TX_RETRANS, "tx_retrans"),
	URDMA_STAT(TX_TIMEOUT, "tx_timeout"),
	URDMA_STAT(RX_READ_GAP, "rx_read_gap"),
	URDMA_STAT(RETRY_EXC, "retry_exc"),
	URDMA_STAT(RNR_EXC, "rnr_exc"),
	URDMA_STAT(TX_READ_RSP, "tx_read_rsp"),
	URDMA_STAT(RX_READ_RSP, "rx_read_rsp"),
	URDMA_STAT(RX_READ_DROP, "rx_read_drop"),
	URDMA_STAT(RX_ACK_GHOST, "rx_ack_ghost"),
	URDMA_STAT(RX_DROP_UNREL, "rx_drop_unrel"),
	URDMA_STAT(RX_DROP_NO_WQE, "rx_drop_no_wqe"),
	URDMA_STAT(RX_BAD_QKEY, "rx_bad_qkey"),

	/*
	 * The core adds what the counters of QPs have to the port's values of the same index. The
	 * port's own include all QPs, so those of QPs have indexes of their own, behind them. As
	 * optional ones they are shown for the port only on request: the sum over all QPs that
	 * have, or had, a counter.
	 */
	URDMA_QP_STAT(RX_PKTS, "rx_pkts"),
	URDMA_QP_STAT(RX_BYTES, "rx_bytes"),
	URDMA_QP_STAT(RX_SEND, "rx_send_requests"),
	URDMA_QP_STAT(RX_WRITE, "rx_write_requests"),
	URDMA_QP_STAT(RX_READ, "rx_read_requests"),
	URDMA_QP_STAT(RX_ATOMIC, "rx_atomic_requests"),
	URDMA_QP_STAT(RX_DUP, "duplicate_request"),
	URDMA_QP_STAT(RX_SEQ_ERR, "out_of_sequence"),
	URDMA_QP_STAT(RX_NO_WQE, "out_of_buffer"),
	URDMA_QP_STAT(RESP_ERR, "resp_cqe_error"),
	URDMA_QP_STAT(RESP_FLUSH, "resp_cqe_flush_error"),
	URDMA_QP_STAT(TX_PKTS, "tx_pkts"),
	URDMA_QP_STAT(TX_BYTES, "tx_bytes"),
	URDMA_QP_STAT(TX_RETRANS, "retransmitted_pkts"),
	URDMA_QP_STAT(RX_ACK, "rx_ack_pkts"),
	URDMA_QP_STAT(RX_NAK_SEQ, "packet_seq_err"),
	URDMA_QP_STAT(RX_NAK_RNR, "rnr_nak_retry_err"),
	URDMA_QP_STAT(RX_READ_GAP, "implied_nak_seq_err"),
	URDMA_QP_STAT(TX_TIMEOUT, "local_ack_timeout_err"),
	URDMA_QP_STAT(REQ_ERR, "req_cqe_error"),
	URDMA_QP_STAT(REQ_FLUSH, "req_cqe_flush_error"),
};

#define URDMA_NUM_RDMA_STATS (ARRAY_SIZE(urdma_rdma_stats) - URDMA_QCNT_N)

static const struct rdma_stat_desc urdma_eth_stats[] = {
	URDMA_STAT(TX_FRAMES, "tx_frames"),
	URDMA_STAT(TX_BYTES, "tx_bytes"),
	URDMA_STAT(RX_FRAMES, "rx_frames"),
	URDMA_STAT(RX_BYTES, "rx_bytes"),
	URDMA_STAT(RX_MAC_ERR, "rx_mac_err"),
	URDMA_STAT(RX_NOT_RDMA, "rx_not_rdma"),
	URDMA_STAT(ETH_TX_FRAMES, "eth_tx_frames"),
	URDMA_STAT(ETH_TX_BAD, "eth_tx_bad"),
	URDMA_STAT(ETH_RX_FRAMES, "eth_rx_frames"),
	URDMA_STAT(ETH_RX_MCAST, "eth_rx_mcast"),
	URDMA_STAT(ETH_RX_FILTERED, "eth_rx_filtered"),
	URDMA_STAT(ETH_RX_NO_BUF, "eth_rx_no_buf"),
	URDMA_STAT(ETH_RX_DROP_FULL, "eth_rx_drop_full"),
	URDMA_STAT(ETH_RX_LENGTH, "eth_rx_length"),
};

static const struct rdma_stat_desc urdma_nic_stats[] = {
	URDMA_STAT(RD_TLP, "rd_tlp"),
	URDMA_STAT(WR_TLP, "wr_tlp"),
	URDMA_STAT(CPL_ERR, "cpl_err"),
	URDMA_STAT(CPL_TIMEOUT, "cpl_timeout"),
	URDMA_STAT(CPL_UNEXPECTED, "cpl_unexpected"),
	URDMA_STAT(DMA_DROP, "dma_drop"),
	URDMA_STAT(MMIO_BAD, "mmio_bad"),
	URDMA_STAT(CMD_OK, "cmd_ok"),
	URDMA_STAT(CMD_ERR, "cmd_err"),
	URDMA_STAT(EQE, "eqe"),
	URDMA_STAT(EQ_LOST, "eq_lost"),
	URDMA_STAT(IRQ, "irq"),
	URDMA_STAT(PTE_HIT, "pte_hit"),
	URDMA_STAT(PTE_MISS, "pte_miss"),
};

static_assert(URDMA_NUM_RDMA_STATS + ARRAY_SIZE(urdma_eth_stats) +
	      ARRAY_SIZE(urdma_nic_stats) == URDMA_CNT_N);

static u64 urdma_stat(struct urdma_dev *dev, const struct rdma_stat_desc *stat)
{
	return urdma_counter(dev, (uintptr_t)stat->priv);
}

/* ---- the RDMA port's ------------------------------------------------------------------------ */

static struct rdma_hw_stats *urdma_alloc_stats(int n)
{
	return rdma_alloc_hw_stats_struct(urdma_rdma_stats, n, RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

struct rdma_hw_stats *urdma_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	struct rdma_hw_stats *stats;

	if (!to_udev(ibdev)->caps.num_cnt_sets)
		return urdma_alloc_stats(URDMA_NUM_RDMA_STATS);
	stats = urdma_alloc_stats(ARRAY_SIZE(urdma_rdma_stats));
	if (stats)
		bitmap_set(stats->is_disabled, URDMA_NUM_RDMA_STATS, URDMA_QCNT_N);
	return stats;
}

/* An optional one is shown from now on, or no more. The NIC counts it anyway. */
int urdma_modify_hw_stat(struct ib_device *ibdev, u32 port, u32 index, bool enable)
{
	return 0;
}

/* Of a counter of QPs: the same list, for its indexes, without what is only the port's. */
struct rdma_hw_stats *urdma_counter_alloc_stats(struct rdma_counter *counter)
{
	struct rdma_hw_stats *stats = urdma_alloc_stats(ARRAY_SIZE(urdma_rdma_stats));

	if (stats)
		bitmap_set(stats->is_disabled, 0, URDMA_NUM_RDMA_STATS);
	return stats;
}

/* URDMA_QCNT_N of them. */
u64 *urdma_qp_stat_values(struct rdma_hw_stats *stats)
{
	return &stats->value[URDMA_NUM_RDMA_STATS];
}

/*
 * One of them, or all. "rdma statistic show" names the first one, and takes the answer for the
 * number of those that are there: so this one is never updated alone. Optional ones are 0: what
 * there is to say of them the core adds.
 */
int urdma_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct urdma_dev *dev = to_udev(ibdev);
	int i;

	if (urdma_is_dead(dev))
		return -EIO;
	if (index && index < URDMA_NUM_RDMA_STATS) {
		stats->value[index] = urdma_stat(dev, &urdma_rdma_stats[index]);
		return index;
	}
	for (i = 0; i < URDMA_NUM_RDMA_STATS; i++)
		stats->value[i] = urdma_stat(dev, &urdma_rdma_stats[i]);
	return stats->num_counters;
}

/* ---- the net device's ----------------------------------------------------------------------- */

u32 urdma_eth_num_stats(void)
{
	return ARRAY_SIZE(urdma_eth_stats);
}

void urdma_eth_stat_names(u8 **data)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(urdma_eth_stats); i++)
		ethtool_sprintf(data, "nic_%s", urdma_eth_stats[i].name);
}

void urdma_eth_stat_values(struct urdma_dev *dev, u64 *data)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(urdma_eth_stats); i++)
		data[i] = urdma_is_dead(dev) ? 0 : urdma_stat(dev, &urdma_eth_stats[i]);
}

/* ---- debugfs -------------------------------------------------------------------------------- */

static struct dentry *urdma_debugfs;

static void urdma_show_stats(struct seq_file *s, const struct rdma_stat_desc *stats, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		seq_printf(s, "%s: %llu\n", stats[i].name, urdma_stat(s->private, &stats[i]));
}

static int urdma_counters_show(struct seq_file *s, void *unused)
{
	if (urdma_is_dead(s->private))
		return -EIO;
	urdma_show_stats(s, urdma_rdma_stats, URDMA_NUM_RDMA_STATS);
	urdma_show_stats(s, urdma_eth_stats, ARRAY_SIZE(urdma_eth_stats));
	urdma_show_stats(s, urdma_nic_stats, ARRAY_SIZE(urdma_nic_stats));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(urdma_counters);

/* Readers have ended when urdma_debugfs_exit() returns. */
void urdma_debugfs_init(struct urdma_dev *dev)
{
	dev->debugfs = debugfs_create_dir(pci_name(dev->pdev), urdma_debugfs);
	debugfs_create_file("counters", 0400, dev->debugfs, dev, &urdma_counters_fops);
}

void urdma_debugfs_exit(struct urdma_dev *dev)
{
	debugfs_remove_recursive(dev->debugfs);
}

void urdma_debugfs_register(void)
{
	urdma_debugfs = debugfs_create_dir(URDMA_DRV_NAME, NULL);
}

void urdma_debugfs_unregister(void)
{
	debugfs_remove_recursive(urdma_debugfs);
}
