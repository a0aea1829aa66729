// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma: the ethtool operations of the net device. All run under the RTNL lock. */
#include <linux/ethtool.h>
#include <linux/if_vlan.h>

#include "urdma_eth.h"

static void urdma_get_drvinfo(struct net_device *ndev, struct ethtool_drvinfo *info)
{
	struct urdma_dev *dev = to_und(ndev)->dev;

	strscpy(info->driver, URDMA_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(dev->pdev), sizeof(info->bus_info));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u", URDMA_VERSION_MAJOR,
		 dev->caps.version_minor);
}

static int urdma_get_link_ksettings(struct net_device *ndev, struct ethtool_link_ksettings *cmd)
{
	ethtool_link_ksettings_zero_link_mode(cmd, supported);
	ethtool_link_ksettings_zero_link_mode(cmd, advertising);
	cmd->base.port = PORT_OTHER;
	cmd->base.autoneg = AUTONEG_DISABLE;
	cmd->base.duplex = DUPLEX_FULL;
	cmd->base.speed = to_und(ndev)->dev->caps.speed_mbps;
	return 0;
}

/* ---- rings, channels, moderation ------------------------------------------------------------ */

static void urdma_get_ringparam(struct net_device *ndev, struct ethtool_ringparam *ring,
				struct kernel_ethtool_ringparam *kring,
				struct netlink_ext_ack *extack)
{
	struct urdma_netdev *nd = to_und(ndev);

	ring->rx_max_pending = 1U << nd->dev->caps.log_eth_ring;
	ring->tx_max_pending = 1U << nd->dev->caps.log_eth_ring;
	ring->rx_pending = 1U << nd->rx_log;
	ring->tx_pending = 1U << nd->tx_log;
}

/* Rounds the number of slots up to a power of two. The core has checked the upper limit. */
static u8 urdma_ring_log(u32 slots)
{
	return max_t(u8, order_base_2(slots), URDMA_ETH_LOG_MIN);
}

static int urdma_set_ringparam(struct net_device *ndev, struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kring,
			       struct netlink_ext_ack *extack)
{
	struct urdma_netdev *nd = to_und(ndev);

	if (ring->rx_mini_pending || ring->rx_jumbo_pending)
		return -EINVAL;
	if (!ring->rx_pending || !ring->tx_pending) {
		NL_SET_ERR_MSG(extack, "a ring has 64 slots at least");
		return -EINVAL;
	}
	return urdma_eth_reconfig(nd, nd->num_chans, urdma_ring_log(ring->tx_pending),
				  urdma_ring_log(ring->rx_pending));
}

static void urdma_get_channels(struct net_device *ndev, struct ethtool_channels *ch)
{
	struct urdma_netdev *nd = to_und(ndev);

	ch->max_combined = nd->max_chans;
	ch->combined_count = nd->num_chans;
}

/* The core has checked the numbers, and that the RSS table names no queue that is removed. */
static int urdma_set_channels(struct net_device *ndev, struct ethtool_channels *ch)
{
	struct urdma_netdev *nd = to_und(ndev);

	if (!ch->combined_count)
		return -EINVAL;
	return urdma_eth_reconfig(nd, ch->combined_count, nd->tx_log, nd->rx_log);
}

static int urdma_get_coalesce(struct net_device *ndev, struct ethtool_coalesce *coal,
			      struct kernel_ethtool_coalesce *kcoal, struct netlink_ext_ack *extack)
{
	const struct urdma_eth_coal *c = &to_und(ndev)->coal;

	coal->rx_coalesce_usecs = c->rx_usecs;
	coal->rx_max_coalesced_frames = c->rx_frames;
	coal->tx_coalesce_usecs = c->tx_usecs;
	coal->tx_max_coalesced_frames = c->tx_frames;
	return 0;
}

static int urdma_set_coalesce(struct net_device *ndev, struct ethtool_coalesce *coal,
			      struct kernel_ethtool_coalesce *kcoal, struct netlink_ext_ack *extack)
{
	struct urdma_netdev *nd = to_und(ndev);

	if (max(coal->rx_coalesce_usecs, coal->tx_coalesce_usecs) > U16_MAX ||
	    max(coal->rx_max_coalesced_frames, coal->tx_max_coalesced_frames) > U8_MAX) {
		NL_SET_ERR_MSG(extack, "at most 65535 usecs, 255 frames");
		return -ERANGE;
	}
	/* Without a timer, fewer frames would wait forever. */
	if ((!coal->rx_coalesce_usecs && coal->rx_max_coalesced_frames > 1) ||
	    (!coal->tx_coalesce_usecs && coal->tx_max_coalesced_frames > 1)) {
		NL_SET_ERR_MSG(extack, "without usecs, frames must be 0 or 1");
		return -EINVAL;
	}
	nd->coal = (struct urdma_eth_coal){
		.rx_usecs = coal->rx_coalesce_usecs,
		.rx_frames = coal->rx_max_coalesced_frames,
		.tx_usecs = coal->tx_coalesce_usecs,
		.tx_frames = coal->tx_max_coalesced_frames,
	};
	urdma_eth_write_int(nd);
	return 0;
}

/* ---- receive side scaling ------------------------------------------------------------------- */

static u32 urdma_get_rxfh_key_size(struct net_device *ndev)
{
	return URDMA_ETH_RSS_KEY;
}

static u32 urdma_get_rxfh_indir_size(struct net_device *ndev)
{
	return URDMA_ETH_RSS_TABLE;
}

static int urdma_get_rxfh(struct net_device *ndev, struct ethtool_rxfh_param *rxfh)
{
	struct urdma_netdev *nd = to_und(ndev);
	u32 i;

	rxfh->hfunc = ETH_RSS_HASH_TOP;
	if (rxfh->key)
		memcpy(rxfh->key, nd->rss_key, URDMA_ETH_RSS_KEY);
	for (i = 0; rxfh->indir && i < URDMA_ETH_RSS_TABLE; i++)
		rxfh->indir[i] = nd->rss_table[i];
	return 0;
}

/* The core has checked the table's numbers. */
static int urdma_set_rxfh(struct net_device *ndev, struct ethtool_rxfh_param *rxfh,
			  struct netlink_ext_ack *extack)
{
	struct urdma_netdev *nd = to_und(ndev);
	u32 i;

	if ((rxfh->hfunc != ETH_RSS_HASH_NO_CHANGE && rxfh->hfunc != ETH_RSS_HASH_TOP) ||
	    rxfh->rss_context)
		return -EOPNOTSUPP;
	if (rxfh->key)
		memcpy(nd->rss_key, rxfh->key, URDMA_ETH_RSS_KEY);
	for (i = 0; rxfh->indir && i < URDMA_ETH_RSS_TABLE; i++)
		nd->rss_table[i] = rxfh->indir[i];
	urdma_eth_write_rss(nd);
	return 0;
}

#define URDMA_RXH_IP	(RXH_IP_SRC | RXH_IP_DST)
#define URDMA_RXH_PORTS (RXH_L4_B_0_1 | RXH_L4_B_2_3)

/* The bits of ETH_RSS for a flow type: for its addresses, and for its ports if it has any. */
static int urdma_rss_bits(u32 flow_type, u64 *ip, u64 *ports)
{
	*ports = 0;
	switch (flow_type) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case SCTP_V4_FLOW:
	case AH_ESP_V4_FLOW:
	case AH_V4_FLOW:
	case ESP_V4_FLOW:
	case IPV4_FLOW:
		*ip = URDMA_RF_ETH_RSS_IPV4;
		break;
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
	case SCTP_V6_FLOW:
	case AH_ESP_V6_FLOW:
	case AH_V6_FLOW:
	case ESP_V6_FLOW:
	case IPV6_FLOW:
		*ip = URDMA_RF_ETH_RSS_IPV6;
		break;
	default:
		return -EINVAL;
	}
	if (flow_type == TCP_V4_FLOW || flow_type == TCP_V6_FLOW)
		*ports = URDMA_RF_ETH_RSS_TCP;
	else if (flow_type == UDP_V4_FLOW || flow_type == UDP_V6_FLOW)
		*ports = URDMA_RF_ETH_RSS_UDP;
	return 0;
}

static int urdma_get_rxnfc(struct net_device *ndev, struct ethtool_rxnfc *info, u32 *locs)
{
	struct urdma_netdev *nd = to_und(ndev);
	u64 ip, ports;
	int err;

	switch (info->cmd) {
	case ETHTOOL_GRXRINGS:
		info->data = nd->num_chans;
		return 0;
	case ETHTOOL_GRXFH:
		err = urdma_rss_bits(info->flow_type, &ip, &ports);
		if (err)
			return err;
		info->data = 0;
		if (nd->rss_fields & ip) {
			info->data = URDMA_RXH_IP;
			if (nd->rss_fields & ports)
				info->data |= URDMA_RXH_PORTS;
		}
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/*
 * The NIC has one bit for IPv4, one for IPv6, one for the ports of TCP and one for those of UDP.
 * The port bits apply to both IP versions: a setting for tcp4 also applies to tcp6. The flow types
 * without ports set the address bits.
 */
static int urdma_set_rxnfc(struct net_device *ndev, struct ethtool_rxnfc *info)
{
	struct urdma_netdev *nd = to_und(ndev);
	u64 ip, ports;
	int err;

	if (info->cmd != ETHTOOL_SRXFH)
		return -EOPNOTSUPP;
	err = urdma_rss_bits(info->flow_type, &ip, &ports);
	if (err)
		return err;
	if (ports) {
		if (info->data != URDMA_RXH_IP && info->data != (URDMA_RXH_IP | URDMA_RXH_PORTS))
			return -EINVAL;
		if (!(nd->rss_fields & ip))
			return -EINVAL;
		nd->rss_fields &= ~ports;
		if (info->data & URDMA_RXH_PORTS)
			nd->rss_fields |= ports;
	} else if (info->flow_type == IPV4_FLOW || info->flow_type == IPV6_FLOW) {
		if (info->data && info->data != URDMA_RXH_IP)
			return -EINVAL;
		nd->rss_fields &= ~ip;
		if (info->data)
			nd->rss_fields |= ip;
	} else {
		/* The other flow types follow their IP version. */
		if (info->data != (nd->rss_fields & ip ? URDMA_RXH_IP : 0))
			return -EINVAL;
	}
	urdma_eth_write_rss(nd);
	return 0;
}

/* ---- statistics ----------------------------------------------------------------------------- */

static const char *const urdma_xmit_names[URDMA_XS_N] = {
	[URDMA_XS_DROPPED] = "tx%u_dropped",
	[URDMA_XS_DMA_ERR] = "tx%u_dma_err",
	[URDMA_XS_LINEARIZED] = "tx%u_linearized",
	[URDMA_XS_CSUM_SW] = "tx%u_csum_sw",
	[URDMA_XS_CSUM_HW] = "tx%u_csum_hw",
	[URDMA_XS_STOPPED] = "tx%u_stopped",
};

static const char *const urdma_poll_names[URDMA_PS_N] = {
	[URDMA_PS_TX_PACKETS] = "tx%u_packets",
	[URDMA_PS_TX_BYTES] = "tx%u_bytes",
	[URDMA_PS_TX_ERRORS] = "tx%u_errors",
	[URDMA_PS_TX_WOKEN] = "tx%u_woken",
	[URDMA_PS_RX_PACKETS] = "rx%u_packets",
	[URDMA_PS_RX_BYTES] = "rx%u_bytes",
	[URDMA_PS_RX_MULTICAST] = "rx%u_multicast",
	[URDMA_PS_RX_DROPPED] = "rx%u_dropped",
	[URDMA_PS_RX_ALLOC_FAIL] = "rx%u_alloc_fail",
	[URDMA_PS_POLLS] = "poll%u",
};

static int urdma_get_sset_count(struct net_device *ndev, int set)
{
	switch (set) {
	case ETH_SS_STATS:
		/* List all possible channels, so that the number does not change. */
		return to_und(ndev)->max_chans * (URDMA_XS_N + URDMA_PS_N) +
		       urdma_eth_num_stats();
	case ETH_SS_TEST:
		return URDMA_TEST_N;
	default:
		return -EOPNOTSUPP;
	}
}

static void urdma_get_strings(struct net_device *ndev, u32 set, u8 *data)
{
	u32 i, k;

	if (set == ETH_SS_TEST) {
		memcpy(data, urdma_test_names, URDMA_TEST_N * ETH_GSTRING_LEN);
		return;
	}
	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < to_und(ndev)->max_chans; i++) {
		for (k = 0; k < URDMA_XS_N; k++)
			ethtool_sprintf(&data, urdma_xmit_names[k], i);
		for (k = 0; k < URDMA_PS_N; k++)
			ethtool_sprintf(&data, urdma_poll_names[k], i);
	}
	urdma_eth_stat_names(&data);
}

/* The statistics of the channels, and the raw counters of the NIC, which count from power-up. */
static void urdma_get_ethtool_stats(struct net_device *ndev, struct ethtool_stats *stats, u64 *data)
{
	struct urdma_netdev *nd = to_und(ndev);
	u32 i;

	for (i = 0; i < nd->max_chans; i++) {
		urdma_eth_read_stats(&nd->stats[i], data, data + URDMA_XS_N);
		data += URDMA_XS_N + URDMA_PS_N;
	}
	urdma_eth_stat_values(nd->dev, data);
}

/* ---- registers ------------------------------------------------------------------------------ */

/*
 * The Ethernet function's registers, as [first, end) of bytes in BAR 0; queue pairs come after
 * them.
 */
static const struct {
	u32 first;
	u32 end;
} urdma_dump[] = {
	{ URDMA_REG_VERSION, URDMA_REG_CAP_ETH + 8 },
	{ URDMA_REG_CTRL, URDMA_REG_PORT_SPEED + 8 },
	{ URDMA_REG_ETH_CTRL, URDMA_REG_ETH_RSS + 8 },
	{ URDMA_REG_ETH_RSS_KEY, URDMA_REG_ETH_RSS_KEY + 8 * URDMA_ETH_RSS_KEY_WORDS },
	{ URDMA_REG_ETH_UC, URDMA_REG_ETH_UC + 8 * URDMA_ETH_MAX_UC },
	{ URDMA_REG_ETH_MC_HASH, URDMA_REG_ETH_MC_HASH + 8 * URDMA_ETH_MC_HASH_WORDS },
	{ URDMA_REG_ETH_RSS_TABLE, URDMA_REG_ETH_RSS_TABLE + 8 * URDMA_ETH_RSS_TABLE_WORDS },
	{ URDMA_REG_ETH_VLAN, URDMA_REG_ETH_VLAN + 8 * URDMA_ETH_VLAN_WORDS },
};

#define URDMA_DUMP_ETHQ (URDMA_ETHQ_STATE + 8)

static int urdma_get_regs_len(struct net_device *ndev)
{
	int i, len = to_und(ndev)->max_chans * URDMA_DUMP_ETHQ;

	for (i = 0; i < ARRAY_SIZE(urdma_dump); i++)
		len += urdma_dump[i].end - urdma_dump[i].first;
	return len;
}

/* The registers in order, each as a 64-bit number. */
static void urdma_get_regs(struct net_device *ndev, struct ethtool_regs *regs, void *p)
{
	struct urdma_netdev *nd = to_und(ndev);
	u64 *data = p;
	u32 i, reg;

	regs->version = 1;
	/* The core has zeroed the buffer. */
	if (urdma_is_dead(nd->dev))
		return;
	for (i = 0; i < ARRAY_SIZE(urdma_dump); i++)
		for (reg = urdma_dump[i].first; reg < urdma_dump[i].end; reg += 8)
			*data++ = urdma_read(nd->dev, reg);
	for (i = 0; i < nd->max_chans; i++)
		for (reg = 0; reg < URDMA_DUMP_ETHQ; reg += 8)
			*data++ = urdma_read(nd->dev, urdma_ethq_reg(i, reg));
}

const struct ethtool_ops urdma_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS | ETHTOOL_COALESCE_MAX_FRAMES,
	.get_drvinfo = urdma_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = urdma_get_link_ksettings,
	.get_ringparam = urdma_get_ringparam,
	.set_ringparam = urdma_set_ringparam,
	.get_channels = urdma_get_channels,
	.set_channels = urdma_set_channels,
	.get_coalesce = urdma_get_coalesce,
	.set_coalesce = urdma_set_coalesce,
	.get_rxfh_key_size = urdma_get_rxfh_key_size,
	.get_rxfh_indir_size = urdma_get_rxfh_indir_size,
	.get_rxfh = urdma_get_rxfh,
	.set_rxfh = urdma_set_rxfh,
	.get_rxnfc = urdma_get_rxnfc,
	.set_rxnfc = urdma_set_rxnfc,
	.get_sset_count = urdma_get_sset_count,
	.get_strings = urdma_get_strings,
	.get_ethtool_stats = urdma_get_ethtool_stats,
	.get_regs_len = urdma_get_regs_len,
	.get_regs = urdma_get_regs,
	.self_test = urdma_self_test,
	.get_ts_info = ethtool_op_get_ts_info,
};

/* of a NIC without the Ethernet function */
const struct ethtool_ops urdma_ethtool_bare_ops = {
	.get_drvinfo = urdma_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = urdma_get_link_ksettings,
};
