// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: the net device of the port: address, carrier, MTU, filters, features, counters, and port
 * events for the RDMA device. The data path is in urdma_eth.c. On a NIC without the Ethernet
 * function, the net device drops and counts what is sent, but still provides the RoCE addresses.
 */
#include <linux/crc32.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/unaligned.h>
#include <net/netdev_queues.h>

#include "urdma_eth.h"

#define URDMA_MAX_MTU 9000
/* log2 of the default number of slots of a ring */
#define URDMA_ETH_LOG_WANTED 10
/* Polling interval for queue pairs stopped by an error: an error raises no interrupt. */
#define URDMA_ETH_SERVICE (2 * HZ)
/* Frames may wait behind RDMA packets, and the clock may be a simulated one. */
#define URDMA_ETH_WATCHDOG (30 * HZ)

/* Features that can be toggled. */
#define URDMA_ETH_FEATURES                                                                      \
	(NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | NETIF_F_RXHASH | NETIF_F_HIGHDMA |     \
	 NETIF_F_HW_VLAN_CTAG_TX | NETIF_F_HW_VLAN_CTAG_RX | NETIF_F_HW_VLAN_CTAG_FILTER)

/*
 * Set the carrier from the link's current state. An event only triggers a read: its data may be out
 * of date if a later event was lost. Any context.
 */
void urdma_netdev_link(struct urdma_dev *dev)
{
	struct net_device *ndev;
	unsigned long flags;
	u64 status;

	/* The lock makes the last reader also the last to set the carrier. */
	spin_lock_irqsave(&dev->link_lock, flags);
	/* Events start before the net device exists and end after it is gone. */
	ndev = dev->netdev;
	if (ndev) {
		/*
		 * A dead device has no link; urdma_tell_dead() calls this after the device is
		 * marked dead.
		 */
		status = urdma_is_dead(dev) ? 0 : urdma_read(dev, URDMA_REG_STATUS);
		if (status != ~0ULL && status & URDMA_RF_STATUS_LINK)
			netif_carrier_on(ndev);
		else
			netif_carrier_off(ndev);
	}
	spin_unlock_irqrestore(&dev->link_lock, flags);
}

/* Writes a byte string, 8 bytes per word, with byte 0 in bits 7:0 of word 0. */
static void urdma_write_bytes(struct urdma_dev *dev, u32 reg, const u8 *bytes, u32 words)
{
	u32 i;

	for (i = 0; i < words; i++)
		urdma_write(dev, reg + 8 * i, get_unaligned_le64(bytes + 8 * i));
}

/* Writes ETH_CTRL according to filters, features and device state. Not in an interrupt. */
void urdma_eth_write_ctrl(struct urdma_netdev *nd)
{
	u64 ctrl;

	spin_lock_bh(&nd->ctrl_lock);
	ctrl = nd->ctrl_mode | nd->ctrl_features;
	/* The NIC applies the VLAN filter first; promiscuous mode must disable it. */
	if (nd->ndev->flags & IFF_PROMISC)
		ctrl &= ~URDMA_RF_ETH_VLAN_FILTER;
	if (READ_ONCE(nd->test))
		ctrl = URDMA_RF_ETH_PROMISC | URDMA_RF_ETH_LOOPBACK;
	if (test_bit(URDMA_ETH_F_UP, &nd->flags))
		ctrl |= URDMA_RF_ETH_RX_ENABLE;
	if (!urdma_is_dead(nd->dev))
		urdma_write(nd->dev, URDMA_REG_ETH_CTRL, ctrl);
	spin_unlock_bh(&nd->ctrl_lock);
}

void urdma_eth_rss_default(struct urdma_netdev *nd, u32 chans)
{
	u32 i;

	for (i = 0; i < URDMA_ETH_RSS_TABLE; i++)
		nd->rss_table[i] = ethtool_rxfh_indir_default(i, chans);
}

void urdma_eth_write_rss(struct urdma_netdev *nd)
{
	struct urdma_dev *dev = nd->dev;

	if (urdma_is_dead(dev))
		return;
	urdma_write_bytes(dev, URDMA_REG_ETH_RSS_KEY, nd->rss_key, URDMA_ETH_RSS_KEY_WORDS);
	urdma_write_bytes(dev, URDMA_REG_ETH_RSS_TABLE, nd->rss_table, URDMA_ETH_RSS_TABLE_WORDS);
	urdma_write(dev, URDMA_REG_ETH_RSS, nd->rss_fields);
}

/* Writes unicast addresses, multicast groups and modes, with the address lock held. */
static void urdma_ndo_set_rx_mode(struct net_device *ndev)
{
	struct urdma_netdev *nd = to_und(ndev);
	const u32 room = nd->dev->caps.eth_uc;
	u64 hash[URDMA_ETH_MC_HASH_WORDS] = {};
	struct netdev_hw_addr *ha;
	u64 mode = 0;
	u32 h, n = 0;

	/* The self test uses the registers, and rewrites them all when it has ended. */
	if (urdma_is_dead(nd->dev) || READ_ONCE(nd->test))
		return;
	if (ndev->flags & IFF_PROMISC || netdev_uc_count(ndev) > room) {
		mode |= URDMA_RF_ETH_PROMISC;
	} else {
		netdev_for_each_uc_addr(ha, ndev)
			urdma_write(nd->dev, URDMA_REG_ETH_UC + 8 * n++,
				    FIELD_PREP(URDMA_RF_ETH_UC_ADDR, urdma_mac_word(ha->addr)) |
					    URDMA_RF_ETH_UC_VALID);
		for (; n < room; n++)
			urdma_write(nd->dev, URDMA_REG_ETH_UC + 8 * n, 0);
	}
	if (ndev->flags & IFF_ALLMULTI)
		mode |= URDMA_RF_ETH_ALLMULTI;
	netdev_for_each_mc_addr(ha, ndev) {
		h = ether_crc_le(ETH_ALEN, ha->addr) & (64 * URDMA_ETH_MC_HASH_WORDS - 1);
		hash[h / 64] |= BIT_ULL(h % 64);
	}
	for (n = 0; n < URDMA_ETH_MC_HASH_WORDS; n++)
		urdma_write(nd->dev, URDMA_REG_ETH_MC_HASH + 8 * n, hash[n]);

	spin_lock_bh(&nd->ctrl_lock);
	nd->ctrl_mode = mode;
	spin_unlock_bh(&nd->ctrl_lock);
	urdma_eth_write_ctrl(nd);
}

/* Rewrite all filters, for example after the self test. Under RTNL. */
void urdma_eth_write_filters(struct urdma_netdev *nd)
{
	u32 i;

	if (urdma_is_dead(nd->dev))
		return;
	for (i = 0; i < URDMA_ETH_VLAN_WORDS; i++)
		urdma_write(nd->dev, URDMA_REG_ETH_VLAN + 8 * i, nd->vlan[i]);
	netif_addr_lock_bh(nd->ndev);
	urdma_ndo_set_rx_mode(nd->ndev);
	netif_addr_unlock_bh(nd->ndev);
}

/* This and the next function run under RTNL, with the device up or down. */
static int urdma_ndo_vlan_rx_add_vid(struct net_device *ndev, __be16 proto, u16 vid)
{
	struct urdma_netdev *nd = to_und(ndev);

	nd->vlan[vid / 64] |= BIT_ULL(vid % 64);
	if (!urdma_is_dead(nd->dev))
		urdma_write(nd->dev, URDMA_REG_ETH_VLAN + 8 * (vid / 64), nd->vlan[vid / 64]);
	return 0;
}

static int urdma_ndo_vlan_rx_kill_vid(struct net_device *ndev, __be16 proto, u16 vid)
{
	struct urdma_netdev *nd = to_und(ndev);

	nd->vlan[vid / 64] &= ~BIT_ULL(vid % 64);
	if (!urdma_is_dead(nd->dev))
		urdma_write(nd->dev, URDMA_REG_ETH_VLAN + 8 * (vid / 64), nd->vlan[vid / 64]);
	return 0;
}

/* VDEV is NULL for a VLAN of a bridge, for example. VLANs of 802.1ad are not filtered. */
static int urdma_vlan_again(struct net_device *vdev, int vid, void *arg)
{
	struct urdma_netdev *nd = arg;

	if (!vdev || vlan_dev_vlan_proto(vdev) == htons(ETH_P_8021Q))
		nd->vlan[vid / 64] |= BIT_ULL(vid % 64);
	return 0;
}

/*
 * Under RTNL. Rebuild the table, because the core does not notify a detached device when a VLAN is
 * removed. Without the feature the core has removed all VLANs, and adds them again when the feature
 * is switched on.
 */
static void urdma_vlans_again(struct urdma_netdev *nd)
{
	memset(nd->vlan, 0, sizeof(nd->vlan));
	if (nd->ndev->features & NETIF_F_HW_VLAN_CTAG_FILTER)
		vlan_for_each(nd->ndev, urdma_vlan_again, nd);
}

/* RXCSUM, RXHASH and the transmit features are checked for each frame. */
static int urdma_ndo_set_features(struct net_device *ndev, netdev_features_t features)
{
	struct urdma_netdev *nd = to_und(ndev);
	u64 ctrl = 0;

	if (features & NETIF_F_HW_VLAN_CTAG_RX)
		ctrl |= URDMA_RF_ETH_VLAN_STRIP;
	if (features & NETIF_F_HW_VLAN_CTAG_FILTER)
		ctrl |= URDMA_RF_ETH_VLAN_FILTER;
	if (features & NETIF_F_LOOPBACK)
		ctrl |= URDMA_RF_ETH_LOOPBACK;
	spin_lock_bh(&nd->ctrl_lock);
	nd->ctrl_features = ctrl;
	spin_unlock_bh(&nd->ctrl_lock);
	urdma_eth_write_ctrl(nd);
	return 0;
}

static int urdma_ndo_open(struct net_device *ndev)
{
	struct urdma_netdev *nd = to_und(ndev);
	int err;

	err = urdma_eth_up(nd);
	if (err)
		return err;
	urdma_netdev_link(nd->dev);
	netif_tx_start_all_queues(ndev);
	schedule_delayed_work(&nd->service, URDMA_ETH_SERVICE);
	return 0;
}

static int urdma_ndo_stop(struct net_device *ndev)
{
	/* The service ends by itself at its next run, when it finds the device down. */
	urdma_eth_down(to_und(ndev));
	return 0;
}

/*
 * Restarts stopped queue pairs. A failed descriptor read stops a queue pair without an interrupt;
 * the core's watchdog finds frames that are not sent in time. The queue pairs of a dead device are
 * taken down, so that its frames are freed although the net device is still up.
 */
static void urdma_eth_service(struct work_struct *work)
{
	struct urdma_netdev *nd = container_of(to_delayed_work(work), struct urdma_netdev, service);
	struct urdma_dev *dev = nd->dev;
	struct urdma_eth_chan *ch;
	u64 ctrl;
	u32 i;

	/*
	 * The lock's holder may wait for the NIC for long, and that must not block the work queue.
	 */
	if (!rtnl_trylock()) {
		schedule_delayed_work(&nd->service, HZ / 10);
		return;
	}
	if (!netif_running(nd->ndev) || !test_bit(URDMA_ETH_F_UP, &nd->flags))
		goto out;
	if (urdma_is_dead(dev)) {
		urdma_eth_down(nd);
		goto out;
	}
	for (i = 0; i < nd->num_chans && !urdma_is_dead(dev); i++) {
		ctrl = urdma_read(dev, urdma_ethq_reg(i, URDMA_ETHQ_CTRL));
		if (ctrl == ~0ULL && urdma_is_gone(dev)) {
			urdma_set_dead(dev, "gone");
			break;
		}
		if (ctrl & (URDMA_RF_ETHQ_TX_ERR | URDMA_RF_ETHQ_RX_ERR))
			set_bit(i, &nd->restart);
		if (!test_and_clear_bit(i, &nd->restart))
			continue;
		ch = nd->chan[i];
		netdev_err(nd->ndev,
			   "queue %u is restarted: sent to %u, told %u, done to %u, received to %u of %u, completions to %u; NIC: %#llx %#llx\n",
			   i, READ_ONCE(ch->tx.pi), READ_ONCE(ch->tx.told), READ_ONCE(ch->tx.ci),
			   READ_ONCE(ch->rx.ci), READ_ONCE(ch->rx.told), READ_ONCE(ch->cq_ci), ctrl,
			   urdma_read(dev, urdma_ethq_reg(i, URDMA_ETHQ_STATE)));
		urdma_eth_restart(nd, i);
	}
	schedule_delayed_work(&nd->service, URDMA_ETH_SERVICE);
out:
	rtnl_unlock();
}

/*
 * The core's watchdog calls this from a timer. The channel may be about to be freed, so the service
 * handles the queue.
 */
static void urdma_ndo_tx_timeout(struct net_device *ndev, unsigned int queue)
{
	struct urdma_netdev *nd = to_und(ndev);

	if (urdma_is_dead(nd->dev))
		return;
	set_bit(queue, &nd->restart);
	mod_delayed_work(system_wq, &nd->service, 0);
}

/*
 * The NIC's count since the driver was loaded, across function resets. A count never decreases: the
 * last value holds while the NIC is dead or reads a lower value. It reads lower after a reset,
 * until urdma_eth_restore_counts(). It reads zeros or ones if it is gone and this has not been
 * detected yet.
 */
static u64 urdma_eth_count(struct urdma_netdev *nd, u32 n)
{
	u64 count;

	spin_lock_bh(&nd->cnt_lock);
	if (!urdma_is_dead(nd->dev)) {
		count = urdma_counter(nd->dev, n) - nd->cnt_base[n];
		if ((s64)(count - nd->cnt_last[n]) > 0)
			nd->cnt_last[n] = count;
	}
	count = nd->cnt_last[n];
	spin_unlock_bh(&nd->cnt_lock);
	return count;
}

/* Called before the NIC may lose its counts. */
static void urdma_eth_save_counts(struct urdma_netdev *nd)
{
	u32 i;

	for (i = 0; i < URDMA_CNT_N; i++)
		urdma_eth_count(nd, i);
}

/* The NIC works (again): the counts continue from their last values. */
static void urdma_eth_restore_counts(struct urdma_netdev *nd)
{
	u32 i;

	spin_lock_bh(&nd->cnt_lock);
	for (i = 0; i < URDMA_CNT_N; i++)
		nd->cnt_base[i] = urdma_counter(nd->dev, i) - nd->cnt_last[i];
	spin_unlock_bh(&nd->cnt_lock);
}

/* The core adds its own counts. */
static void urdma_ndo_get_stats64(struct net_device *ndev, struct rtnl_link_stats64 *s)
{
	struct urdma_netdev *nd = to_und(ndev);
	u64 xmit[URDMA_XS_N], poll[URDMA_PS_N];
	u32 i;

	for (i = 0; i < nd->max_chans; i++) {
		urdma_eth_read_stats(&nd->stats[i], xmit, poll);
		s->rx_packets += poll[URDMA_PS_RX_PACKETS];
		s->rx_bytes += poll[URDMA_PS_RX_BYTES];
		s->multicast += poll[URDMA_PS_RX_MULTICAST];
		s->rx_dropped += poll[URDMA_PS_RX_DROPPED];
		s->tx_packets += poll[URDMA_PS_TX_PACKETS];
		s->tx_bytes += poll[URDMA_PS_TX_BYTES];
		s->tx_dropped += xmit[URDMA_XS_DROPPED];
	}
	s->rx_missed_errors = urdma_eth_count(nd, URDMA_CNT_ETH_RX_NO_BUF);
	s->rx_fifo_errors = urdma_eth_count(nd, URDMA_CNT_ETH_RX_DROP_FULL);
	s->rx_length_errors = urdma_eth_count(nd, URDMA_CNT_ETH_RX_LENGTH);
	s->rx_crc_errors = urdma_eth_count(nd, URDMA_CNT_RX_MAC_ERR);
	s->rx_errors = s->rx_length_errors + s->rx_crc_errors;
	s->tx_errors = urdma_eth_count(nd, URDMA_CNT_ETH_TX_BAD);
}

/* ---- statistics of the queues, as netlink gives them (qstats-get) ---------------------------- */

static void urdma_add_queue_stats(struct urdma_netdev *nd, u32 i, struct netdev_queue_stats_rx *rx,
				  struct netdev_queue_stats_tx *tx)
{
	u64 xmit[URDMA_XS_N], poll[URDMA_PS_N];

	urdma_eth_read_stats(&nd->stats[i], xmit, poll);
	rx->packets += poll[URDMA_PS_RX_PACKETS];
	rx->bytes += poll[URDMA_PS_RX_BYTES];
	rx->alloc_fail += poll[URDMA_PS_RX_ALLOC_FAIL];
	tx->packets += poll[URDMA_PS_TX_PACKETS];
	tx->bytes += poll[URDMA_PS_TX_BYTES];
	tx->hw_drop_errors += poll[URDMA_PS_TX_ERRORS];
	tx->needs_csum += xmit[URDMA_XS_CSUM_HW];
	tx->stop += xmit[URDMA_XS_STOPPED];
	tx->wake += poll[URDMA_PS_TX_WOKEN];
}

static void urdma_zero_queue_stats(struct netdev_queue_stats_rx *rx,
				   struct netdev_queue_stats_tx *tx)
{
	/* Not the whole structures: fields that the driver does not count must stay unchanged. */
	rx->packets = 0;
	rx->bytes = 0;
	rx->alloc_fail = 0;
	tx->packets = 0;
	tx->bytes = 0;
	tx->hw_drop_errors = 0;
	tx->needs_csum = 0;
	tx->stop = 0;
	tx->wake = 0;
}

static void urdma_get_queue_stats_rx(struct net_device *ndev, int i,
				     struct netdev_queue_stats_rx *rx)
{
	struct netdev_queue_stats_tx tx;

	urdma_zero_queue_stats(rx, &tx);
	urdma_add_queue_stats(to_und(ndev), i, rx, &tx);
}

static void urdma_get_queue_stats_tx(struct net_device *ndev, int i,
				     struct netdev_queue_stats_tx *tx)
{
	struct netdev_queue_stats_rx rx;

	urdma_zero_queue_stats(&rx, tx);
	urdma_add_queue_stats(to_und(ndev), i, &rx, tx);
}

/* The statistics of channels not in use; both directions have the same number of queues. */
static void urdma_get_base_stats(struct net_device *ndev, struct netdev_queue_stats_rx *rx,
				 struct netdev_queue_stats_tx *tx)
{
	struct urdma_netdev *nd = to_und(ndev);
	u32 i;

	urdma_zero_queue_stats(rx, tx);
	for (i = ndev->real_num_rx_queues; i < nd->max_chans; i++)
		urdma_add_queue_stats(nd, i, rx, tx);
}

static const struct netdev_stat_ops urdma_stat_ops = {
	.get_queue_stats_rx = urdma_get_queue_stats_rx,
	.get_queue_stats_tx = urdma_get_queue_stats_tx,
	.get_base_stats = urdma_get_base_stats,
};

/* Without the Ethernet function. */
static int urdma_ndo_open_bare(struct net_device *ndev)
{
	urdma_netdev_link(to_und(ndev)->dev);
	netif_start_queue(ndev);
	return 0;
}

static int urdma_ndo_stop_bare(struct net_device *ndev)
{
	netif_stop_queue(ndev);
	return 0;
}

static netdev_tx_t urdma_ndo_start_xmit_bare(struct sk_buff *skb, struct net_device *ndev)
{
	dev_core_stats_tx_dropped_inc(ndev);
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static void urdma_write_mac(struct urdma_dev *dev, const u8 *mac)
{
	if (!urdma_is_dead(dev))
		urdma_write(dev, URDMA_REG_MAC, urdma_mac_word(mac));
}

static int urdma_ndo_set_mac_address(struct net_device *ndev, void *addr)
{
	int err = eth_mac_addr(ndev, addr);

	if (!err)
		urdma_write_mac(to_und(ndev)->dev, ndev->dev_addr);
	return err;
}

/* The NIC accepts frames up to its maximum whatever the MTU, so it need not know the MTU. */
static const struct net_device_ops urdma_netdev_ops = {
	.ndo_open = urdma_ndo_open,
	.ndo_stop = urdma_ndo_stop,
	.ndo_start_xmit = urdma_eth_xmit,
	.ndo_tx_timeout = urdma_ndo_tx_timeout,
	.ndo_set_rx_mode = urdma_ndo_set_rx_mode,
	.ndo_set_mac_address = urdma_ndo_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_vlan_rx_add_vid = urdma_ndo_vlan_rx_add_vid,
	.ndo_vlan_rx_kill_vid = urdma_ndo_vlan_rx_kill_vid,
	.ndo_set_features = urdma_ndo_set_features,
	.ndo_get_stats64 = urdma_ndo_get_stats64,
};

static const struct net_device_ops urdma_netdev_bare_ops = {
	.ndo_open = urdma_ndo_open_bare,
	.ndo_stop = urdma_ndo_stop_bare,
	.ndo_start_xmit = urdma_ndo_start_xmit_bare,
	.ndo_set_mac_address = urdma_ndo_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
};

static void urdma_netdev_init_eth(struct urdma_netdev *nd)
{
	struct urdma_dev *dev = nd->dev;
	struct net_device *ndev = nd->ndev;
	u32 i;

	nd->num_chans = nd->max_chans;
	nd->tx_log = min_t(u8, dev->caps.log_eth_ring, URDMA_ETH_LOG_WANTED);
	nd->rx_log = nd->tx_log;
	/* A frame must fit the smallest ring. */
	nd->max_descs = min3(dev->caps.eth_tx_descs, (u32)MAX_SKB_FRAGS + 1,
			     1U << (URDMA_ETH_LOG_MIN - 1));
	/* The frame may be a single descriptor. */
	nd->max_bytes = min_t(u32, dev->caps.eth_max_frame, FIELD_MAX(URDMA_ETXD1_LENGTH));
	nd->coal = (struct urdma_eth_coal){
		.rx_usecs = 4,
		.rx_frames = 16,
		.tx_usecs = 16,
		.tx_frames = 32,
	};
	nd->rss_fields = URDMA_RF_ETH_RSS_IPV4 | URDMA_RF_ETH_RSS_IPV6 | URDMA_RF_ETH_RSS_TCP |
			 URDMA_RF_ETH_RSS_UDP;
	netdev_rss_key_fill(nd->rss_key, sizeof(nd->rss_key));
	urdma_eth_rss_default(nd, nd->num_chans);
	for (i = 0; i < nd->max_chans; i++) {
		u64_stats_init(&nd->stats[i].xmit_sync);
		u64_stats_init(&nd->stats[i].poll_sync);
	}
	urdma_eth_restore_counts(nd);

	ndev->netdev_ops = &urdma_netdev_ops;
	ndev->ethtool_ops = &urdma_ethtool_ops;
	ndev->stat_ops = &urdma_stat_ops;
	ndev->watchdog_timeo = URDMA_ETH_WATCHDOG;
	ndev->max_mtu = min_t(u32, URDMA_MAX_MTU, nd->max_bytes - ETH_HLEN);
	ndev->priv_flags |= IFF_UNICAST_FLT | IFF_LIVE_ADDR_CHANGE;
	ndev->features = URDMA_ETH_FEATURES;
	ndev->hw_features = URDMA_ETH_FEATURES | NETIF_F_LOOPBACK;
	ndev->vlan_features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	ndev->hw_enc_features = ndev->vlan_features;
	/* matches the initial features */
	nd->ctrl_features = URDMA_RF_ETH_VLAN_STRIP | URDMA_RF_ETH_VLAN_FILTER;
}

int urdma_netdev_init(struct urdma_dev *dev)
{
	u32 chans = max(dev->num_eth_vectors, 1U);
	struct urdma_netdev *nd;
	struct net_device *ndev;
	u64 mac = urdma_read(dev, URDMA_REG_MAC);
	u8 addr[ETH_ALEN];
	int err, i;

	ndev = alloc_etherdev_mq(sizeof(*nd), chans);
	if (!ndev)
		return -ENOMEM;
	nd = netdev_priv(ndev);
	nd->dev = dev;
	nd->ndev = ndev;
	nd->max_chans = dev->num_eth_vectors;
	spin_lock_init(&nd->ctrl_lock);
	spin_lock_init(&nd->cnt_lock);
	INIT_DELAYED_WORK(&nd->service, urdma_eth_service);
	SET_NETDEV_DEV(ndev, &dev->pdev->dev);
	ndev->min_mtu = ETH_MIN_MTU;
	if (urdma_has_eth(dev)) {
		urdma_netdev_init_eth(nd);
	} else {
		ndev->netdev_ops = &urdma_netdev_bare_ops;
		ndev->ethtool_ops = &urdma_ethtool_bare_ops;
		ndev->max_mtu = URDMA_MAX_MTU;
	}
	for (i = 0; i < ETH_ALEN; i++)
		addr[i] = mac >> (8 * i);
	if (is_valid_ether_addr(addr)) {
		eth_hw_addr_set(ndev, addr);
	} else {
		eth_hw_addr_random(ndev);
		urdma_write_mac(dev, ndev->dev_addr);
	}
	netif_carrier_off(ndev);
	err = urdma_eth_irqs_init(nd);
	if (err)
		goto err_free;
	err = register_netdev(ndev);
	if (err)
		goto err_irqs;
	spin_lock_irq(&dev->link_lock);
	dev->netdev = ndev;
	spin_unlock_irq(&dev->link_lock);
	/*
	 * Only now, when the event handler can find the net device, so that no link change is
	 * missed.
	 */
	urdma_netdev_link(dev);
	return 0;

err_irqs:
	urdma_eth_irqs_free(nd);
err_free:
	free_netdev(ndev);
	return err;
}

void urdma_netdev_exit(struct urdma_dev *dev)
{
	struct net_device *ndev = dev->netdev;
	struct urdma_netdev *nd = to_und(ndev);

	/*
	 * No change of the carrier after this: the core handles a change later, and waits for that
	 * only while the net device is unregistered.
	 */
	spin_lock_irq(&dev->link_lock);
	dev->netdev = NULL;
	spin_unlock_irq(&dev->link_lock);
	/* Brings it down: the channels are gone after this. */
	unregister_netdev(ndev);
	cancel_delayed_work_sync(&nd->service);
	urdma_eth_irqs_free(nd);
	free_netdev(ndev);
}

/*
 * Called before the NIC loses its state. The net device keeps its addresses and settings, but
 * neither sends nor receives, and ethtool operations fail with -ENODEV.
 */
void urdma_netdev_detach(struct urdma_dev *dev)
{
	struct net_device *ndev = dev->netdev;
	struct urdma_netdev *nd = to_und(ndev);

	rtnl_lock();
	netif_device_detach(ndev);
	if (urdma_has_eth(dev)) {
		urdma_eth_down(nd);
		urdma_eth_save_counts(nd);
	}
	rtnl_unlock();
	cancel_delayed_work_sync(&nd->service);
}

/* The NIC works again, but has lost its state. */
void urdma_netdev_attach(struct urdma_dev *dev)
{
	struct net_device *ndev = dev->netdev;
	struct urdma_netdev *nd = to_und(ndev);
	int err = 0;

	rtnl_lock();
	urdma_write_mac(dev, ndev->dev_addr);
	if (urdma_has_eth(dev)) {
		urdma_eth_restore_counts(nd);
		urdma_vlans_again(nd);
		urdma_eth_write_filters(nd);
		urdma_eth_write_rss(nd);
		if (netif_running(ndev))
			err = urdma_eth_up(nd);
	}
	netif_device_attach(ndev);
	if (err) {
		netdev_err(ndev, "cannot be brought up again: %d\n", err);
		dev_close(ndev);
	} else if (urdma_has_eth(dev) && netif_running(ndev)) {
		schedule_delayed_work(&nd->service, URDMA_ETH_SERVICE);
	}
	rtnl_unlock();
	urdma_netdev_link(dev);
}

/*
 * Under the RTNL lock, as all notifiers. The driver must report the port's state to the RDMA core.
 * The core follows addresses by itself: when a MAC address, an IP address or a VLAN is added or
 * removed, it updates the GIDs (urdma_add_gid()) and notifies its clients. A new MTU has no event:
 * the next query of the port returns it, and a QP keeps its path MTU.
 */
static int urdma_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct urdma_dev *dev = container_of(nb, struct urdma_dev, netdev_nb);
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	bool active;

	if (ndev != dev->netdev)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		active = netif_running(ndev) && netif_carrier_ok(ndev);
		if (active == dev->port_active)
			break;
		dev->port_active = active;
		urdma_ib_event(dev, active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
		break;
	default:
		break;
	}
	return NOTIFY_DONE;
}

/*
 * Watch the net device while the ib_device is registered. Reports the port's current state at once.
 */
int urdma_netdev_watch(struct urdma_dev *dev)
{
	int err;

	dev->port_active = false;
	dev->netdev_nb.notifier_call = urdma_netdev_event;
	err = register_netdevice_notifier(&dev->netdev_nb);
	if (err)
		dev->netdev_nb.notifier_call = NULL;
	return err;
}

void urdma_netdev_unwatch(struct urdma_dev *dev)
{
	if (dev->netdev_nb.notifier_call)
		unregister_netdevice_notifier(&dev->netdev_nb);
	dev->netdev_nb.notifier_call = NULL;
}
