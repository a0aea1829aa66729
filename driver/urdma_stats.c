// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: the counters of the NIC. RDMA counters are statistics of the RDMA port, Ethernet counters
 * statistics of the net device (ethtool -S). debugfs (urdma/<PCI address>/counters) has all of
 * them; those of PCIe, commands and caches are only there. All count from power-up or the last
 * function reset. Counters of QPs (urdma_counter.c) count from their binding.
 *
 * A port counter has the name that mlx5 or rxe uses for the same meaning, if there is one.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "urdma_eth.h"

#define URDMA_STAT(cnt_, name_) { .name = (name_), .priv = (void *)(uintptr_t)URDMA_CNT_##cnt_ }
/* In the order of URDMA_QCNT_*. */
#define URDMA_QP_STAT(cnt_, name_) { .name = (name_), .priv = (void *)(uintptr_t)URDMA_QCNT_##cnt_ }

static const struct rdma_stat_desc urdma_rdma_stats[] = {
	URDMA_STAT(RX_RDMA_PKTS, "rcvd_pkts"),
	URDMA_STAT(RX_ICRC_ERR, "rx_icrc_encapsulated"),
	URDMA_STAT(RX_MALFORMED, "rx_malformed"),
	URDMA_STAT(RX_DROP_FULL, "rx_drop_full"),
	URDMA_STAT(RX_NO_QP, "rx_no_qp"),
	URDMA_STAT(TX_ACK, "tx_ack"),
	URDMA_STAT(TX_NAK_SEQ, "tx_nak_seq"),
	URDMA_STAT(TX_NAK_RNR, "send_rnr_err"),
	URDMA_STAT(TX_NAK_OTHER, "tx_nak_other"),
	URDMA_STAT(RX_ACK, "rx_ack"),
	URDMA_STAT(RX_NAK, "rx_nak"),
	URDMA_STAT(RX_NAK_RNR, "rcvd_rnr_err"),
	URDMA_STAT(DB_OK, "db_ok"),
	URDMA_STAT(DB_OWNER, "db_owner"),
	URDMA_STAT(DB_BAD, "db_bad"),
	URDMA_STAT(CQE, "cqe"),
	URDMA_STAT(CQ_OVERFLOW, "cq_overflow"),
	URDMA_STAT(MR_ERR, "mr_err"),
	URDMA_STAT(RETRY_EXC, "retry_exceeded_err"),
	URDMA_STAT(RNR_EXC, "retry_rnr_exceeded_err"),
	URDMA_STAT(TX_READ_RSP, "tx_read_rsp"),
	URDMA_STAT(RX_READ_RSP, "rx_read_rsp"),
	URDMA_STAT(RX_READ_DROP, "rx_read_drop"),
	URDMA_STAT(RX_ACK_GHOST, "rx_ack_ghost"),
	URDMA_STAT(RX_DROP_UNREL, "rx_drop_unrel"),
	URDMA_STAT(RX_DROP_NO_WQE, "rx_drop_no_wqe"),
	URDMA_STAT(RX_BAD_QKEY, "rx_bad_qkey"),

	/*
	 * Counters that the NIC keeps for each set. The core adds the values of the QP counters at
	 * the same index to the port's value. So the port's own value is that of set 0: QPs without
	 * a counter.
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
	URDMA_QP_STAT(TX_PKTS, "sent_pkts"),
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

/* Only in debugfs. The first ones are sums of counters above. */
static const struct rdma_stat_desc urdma_nic_stats[] = {
	URDMA_STAT(TX_RDMA_PKTS, "tx_rdma_pkts"),
	URDMA_STAT(RX_SEQ_ERR, "rx_seq_err"),
	URDMA_STAT(RX_DUP, "rx_dup"),
	URDMA_STAT(TX_RETRANS, "tx_retrans"),
	URDMA_STAT(TX_TIMEOUT, "tx_timeout"),
	URDMA_STAT(RX_READ_GAP, "rx_read_gap"),
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
	URDMA_STAT(DIR_HIT, "dir_hit"),
	URDMA_STAT(DIR_MISS, "dir_miss"),
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
	return urdma_alloc_stats(to_udev(ibdev)->caps.num_cnt_sets ? ARRAY_SIZE(urdma_rdma_stats) :
								     URDMA_NUM_RDMA_STATS);
}

/* For a QP counter: the same list, so the same indexes, with the port-only counters disabled. */
struct rdma_hw_stats *urdma_counter_alloc_stats(struct rdma_counter *counter)
{
	struct rdma_hw_stats *stats = urdma_alloc_stats(ARRAY_SIZE(urdma_rdma_stats));

	if (stats)
		bitmap_set(stats->is_disabled, 0, URDMA_NUM_RDMA_STATS);
	return stats;
}

/* Reads the counters of a set. May sleep. */
int urdma_get_qp_stats(struct urdma_dev *dev, u32 set, struct rdma_hw_stats *stats)
{
	u64 *value = &stats->value[URDMA_NUM_RDMA_STATS];
	u64 cmd[URDMA_CMD_WORDS], cpl[URDMA_CMD_WORDS];
	u32 i, k;
	int err;

	for (i = 0; i < URDMA_QCNT_N; i += URDMA_QCNT_GROUP) {
		memset(cmd, 0, sizeof(cmd));
		cmd[0] = urdma_cmd0(URDMA_CMD_QUERY_CNT, set);
		cmd[1] = FIELD_PREP(URDMA_CMD_QCNT1_GROUP, i / URDMA_QCNT_GROUP);
		err = urdma_cmd_exec(dev, cmd, cpl);
		if (err)
			return err;
		for (k = 0; k < URDMA_QCNT_GROUP && i + k < URDMA_QCNT_N; k++)
			value[i + k] = FIELD_GET(URDMA_CPL_QCNT1_VALUE, cpl[1 + k]);
	}
	return 0;
}

/*
 * Reads one counter or all. "rdma statistic show" asks for the first one and takes the return value
 * as the number of counters, so a request for the first one updates all.
 */
static int urdma_read_hw_stats(struct urdma_dev *dev, struct rdma_hw_stats *stats, int index)
{
	int i, err;

	if (urdma_is_dead(dev))
		return -EIO;
	if (index && index < URDMA_NUM_RDMA_STATS) {
		stats->value[index] = urdma_stat(dev, &urdma_rdma_stats[index]);
		return index;
	}
	if (dev->caps.num_cnt_sets) {
		err = urdma_get_qp_stats(dev, 0, stats);
		if (err)
			return err;
	}
	for (i = 0; i < URDMA_NUM_RDMA_STATS; i++)
		stats->value[i] = urdma_stat(dev, &urdma_rdma_stats[i]);
	return stats->num_counters;
}

/*
 * The core reads all counters once while it registers the device, and leaks them if that read
 * fails. No one uses these values, so the device is not read.
 */
int urdma_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	int ret;

	if (!ib_device_try_get(ibdev))
		return stats->num_counters;
	ret = urdma_read_hw_stats(to_udev(ibdev), stats, index);
	ib_device_put(ibdev);
	return ret;
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
