/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * urdma: what the files of the net device share (urdma_netdev.c, urdma_eth.c,
 * urdma_ethtool.c, urdma_selftest.c).
 *
 * A channel is a queue pair of the NIC, its NAPI and its interrupt vector. Channels exist while the
 * device is up or runs its self test. They are created, started, stopped and freed under the RTNL
 * lock. The transmit path finds a channel in chan[]: an entry changes only while all transmit
 * queues are stopped. They are stopped with their locks held, so no sender is active. An interrupt
 * handler finds its channel in its vector. Stopping a channel removes it from the vector and waits
 * for the handler.
 *
 * The memory of a channel is freed when the NIC reports that the queue pair is no longer active, or
 * when the device is dead.
 *
 * Order of locks: RTNL, the core's address lock, ctrl_lock. No lock is taken under cnt_lock. A
 * channel has no locks: the transmit queue's lock protects what xmit writes, NAPI protects what
 * NAPI writes. Each side also reads the other's index (pi, ci) of the transmit ring.
 */
#ifndef URDMA_ETH_H
#define URDMA_ETH_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/timer.h>
#include <linux/u64_stats_sync.h>
#include <linux/workqueue.h>

#include "urdma.h"

#define URDMA_ETH_RSS_KEY   (8 * URDMA_ETH_RSS_KEY_WORDS)
#define URDMA_ETH_RSS_TABLE (8 * URDMA_ETH_RSS_TABLE_WORDS)

struct urdma_etxd {
	__le64 w[URDMA_ETXD_SIZE / 8];
};

struct urdma_ecqe {
	__le64 w[URDMA_ECQE_SIZE / 8];
};

/* Statistics of a queue that xmit writes, under the transmit queue's lock. */
enum urdma_eth_xmit_stat {
	URDMA_XS_DROPPED,
	URDMA_XS_DMA_ERR,
	URDMA_XS_LINEARIZED,
	URDMA_XS_CSUM_SW,
	URDMA_XS_CSUM_HW,
	URDMA_XS_STOPPED,
	URDMA_XS_N,
};

/* Those that NAPI writes. */
enum urdma_eth_poll_stat {
	URDMA_PS_TX_PACKETS,
	URDMA_PS_TX_BYTES,
	URDMA_PS_TX_ERRORS,
	URDMA_PS_TX_WOKEN,
	URDMA_PS_RX_PACKETS,
	URDMA_PS_RX_BYTES,
	URDMA_PS_RX_MULTICAST,
	URDMA_PS_RX_DROPPED,
	URDMA_PS_RX_ALLOC_FAIL,
	URDMA_PS_POLLS,
	URDMA_PS_N,
};

/* They live as long as the net device, so counts do not restart when channels are recreated. */
struct urdma_eth_stats {
	struct u64_stats_sync xmit_sync;
	struct u64_stats_sync poll_sync;
	u64_stats_t xmit[URDMA_XS_N];
	u64_stats_t poll[URDMA_PS_N];
};

/* A slot of the transmit ring: what to free when it is done. */
struct urdma_eth_txi {
	/* set in the slot of a frame's last descriptor */
	struct sk_buff *skb;
	dma_addr_t dma;
	u32 len;
	/* maps a page, not the linear part */
	bool page;
};

/* Indexes run free, as in doorbells. One slot stays free. */
struct urdma_eth_tx {
	struct urdma_etxd *ring;
	struct urdma_eth_txi *info;
	dma_addr_t dma;
	u16 mask;
	/* room at which the queue is woken */
	u16 wake;
	/* written by xmit: next slot; the producer last sent to the NIC */
	u16 pi;
	u16 told;
	/* written by NAPI: first slot that is not done */
	u16 ci;
};

struct urdma_eth_rx {
	__le64 *ring;
	struct page **page;
	struct page_pool *pool;
	dma_addr_t dma;
	u16 mask;
	/* number of slots filled at a time */
	u16 batch;
	u16 pi;
	u16 told;
	u16 ci;
};

struct urdma_eth_chan {
	struct napi_struct napi;
	struct urdma_netdev *nd;
	struct netdev_queue *txq;
	struct urdma_eth_stats *stats;
	u32 index;
	u8 tx_log;
	u8 rx_log;
	u8 cq_log;

	/* completion ring, used by NAPI */
	struct urdma_ecqe *cq;
	dma_addr_t cq_dma;
	u32 cq_ci;
	/* a poll that may not receive has taken the transmit completions before this one */
	u32 cq_tx_seen;

	struct urdma_eth_tx tx;
	struct urdma_eth_rx rx;
	/* polls again when there was no memory for receive buffers */
	struct timer_list refill;
};

struct urdma_eth_vec {
	struct urdma_eth_chan *chan;
	int irq;
	int cpu;
	char name[40];
};

struct urdma_eth_coal {
	u16 rx_usecs;
	u16 tx_usecs;
	u8 rx_frames;
	u8 tx_frames;
};

/* A frame of the self test: the frame and queue expected, until done completes. */
struct urdma_eth_test {
	struct completion done;
	struct sk_buff *skb;
	u32 queue;
	/* buffer for the received frame */
	u8 *buf;
	int err;
};

/* Results of the self test. */
enum urdma_test {
	URDMA_TEST_LINK,
	URDMA_TEST_COMMAND,
	URDMA_TEST_INTERRUPT,
	URDMA_TEST_REGISTERS,
	URDMA_TEST_LOOPBACK,
	URDMA_TEST_N,
};

enum urdma_eth_flag {
	/* channels are running, and RX_ENABLE is set */
	URDMA_ETH_F_UP,
};

/* Private part of the net device. */
struct urdma_netdev {
	struct urdma_dev *dev;
	struct net_device *ndev;
	unsigned long flags;

	/* All fields below need the Ethernet function. RTNL protects them unless noted. */
	u32 max_chans;
	u32 num_chans;
	u8 tx_log;
	u8 rx_log;
	/* maximum descriptors and bytes of a frame that we send */
	u32 max_descs;
	u32 max_bytes;
	struct urdma_eth_coal coal;
	struct urdma_eth_chan *chan[URDMA_ETH_MAX_QUEUES];
	struct urdma_eth_vec vec[URDMA_ETH_MAX_QUEUES];
	struct urdma_eth_stats stats[URDMA_ETH_MAX_QUEUES];
	/* protects both fields below: readers of statistics do not hold RTNL */
	spinlock_t cnt_lock;
	/* values of the NIC's counters at which the net device's are 0 */
	u64 cnt_base[URDMA_CNT_N];
	/* the net device's counts at the last reading */
	u64 cnt_last[URDMA_CNT_N];

	u64 rss_fields;
	u8 rss_key[URDMA_ETH_RSS_KEY];
	u8 rss_table[URDMA_ETH_RSS_TABLE];
	u64 vlan[URDMA_ETH_VLAN_WORDS];

	/* protects ETH_CTRL and its parts: features are set under RTNL, filters are not */
	spinlock_t ctrl_lock;
	u64 ctrl_mode;
	u64 ctrl_features;

	/*
	 * finds queue pairs that an error has stopped; also restarts those set in restart (atomic
	 * bits)
	 */
	struct delayed_work service;
	unsigned long restart;
	/* the self test owns frames and filters, not the stack; set under the address lock */
	struct urdma_eth_test *test;
};

static inline struct urdma_netdev *to_und(struct net_device *ndev)
{
	return netdev_priv(ndev);
}

static inline u32 urdma_ethq_reg(u32 queue, u32 reg)
{
	return URDMA_REG_ETHQ + queue * URDMA_ETHQ_STRIDE + reg;
}

static inline bool urdma_has_eth(struct urdma_dev *dev)
{
	return dev->caps.features & URDMA_RF_FEAT_ETH;
}

/* urdma_eth.c */
int urdma_eth_irqs_init(struct urdma_netdev *nd);
void urdma_eth_irqs_free(struct urdma_netdev *nd);
int urdma_eth_up(struct urdma_netdev *nd);
void urdma_eth_down(struct urdma_netdev *nd);
int urdma_eth_reconfig(struct urdma_netdev *nd, u32 chans, u8 tx_log, u8 rx_log);
void urdma_eth_restart(struct urdma_netdev *nd, u32 queue);
netdev_tx_t urdma_eth_xmit(struct sk_buff *skb, struct net_device *ndev);
void urdma_eth_write_int(struct urdma_netdev *nd);
void urdma_eth_read_stats(const struct urdma_eth_stats *stats, u64 *xmit, u64 *poll);

/* urdma_netdev.c */
void urdma_eth_write_ctrl(struct urdma_netdev *nd);
void urdma_eth_write_filters(struct urdma_netdev *nd);
void urdma_eth_write_rss(struct urdma_netdev *nd);
void urdma_eth_rss_default(struct urdma_netdev *nd, u32 chans);

/* urdma_ethtool.c */
extern const struct ethtool_ops urdma_ethtool_ops;
extern const struct ethtool_ops urdma_ethtool_bare_ops;

/* urdma_stats.c */
u32 urdma_eth_num_stats(void);
void urdma_eth_stat_names(u8 **data);
void urdma_eth_stat_values(struct urdma_dev *dev, u64 *data);

/* urdma_selftest.c */
extern const char urdma_test_names[URDMA_TEST_N][ETH_GSTRING_LEN];
void urdma_self_test(struct net_device *ndev, struct ethtool_test *etest, u64 *result);
void urdma_eth_test_rx(struct urdma_eth_chan *ch, struct sk_buff *skb);

#endif
