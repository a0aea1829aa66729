// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: the net device of the port: address, carrier, MTU. It has no data path yet: what is sent
 * is dropped and counted. RoCE addresses come from it all the same.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/netdevice.h>

#include "urdma.h"

#define URDMA_MAX_MTU 9000

struct urdma_netdev_priv {
	struct urdma_dev *dev;
};

static struct urdma_dev *urdma_of(struct net_device *ndev)
{
	struct urdma_netdev_priv *priv = netdev_priv(ndev);

	return priv->dev;
}

/* The link as the NIC has it now, or from an event. Any context. */
void urdma_netdev_link(struct urdma_dev *dev, bool up)
{
	/* Events start before the net device is made. */
	struct net_device *ndev = READ_ONCE(dev->netdev);

	if (!ndev)
		return;
	if (up)
		netif_carrier_on(ndev);
	else
		netif_carrier_off(ndev);
}

static void urdma_netdev_read_link(struct urdma_dev *dev)
{
	u64 status = urdma_is_dead(dev) ? 0 : urdma_read(dev, URDMA_REG_STATUS);

	urdma_netdev_link(dev, status != ~0ULL && status & URDMA_RF_STATUS_LINK);
}

static int urdma_ndo_open(struct net_device *ndev)
{
	urdma_netdev_read_link(urdma_of(ndev));
	netif_start_queue(ndev);
	return 0;
}

static int urdma_ndo_stop(struct net_device *ndev)
{
	netif_stop_queue(ndev);
	return 0;
}

static netdev_tx_t urdma_ndo_start_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	dev_core_stats_tx_dropped_inc(ndev);
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static void urdma_write_mac(struct urdma_dev *dev, const u8 *mac)
{
	/* byte 0 of the address in bits 7:0 */
	if (!urdma_is_dead(dev))
		urdma_write(dev, URDMA_REG_MAC, swab64(ether_addr_to_u64(mac)) >> 16);
}

static int urdma_ndo_set_mac_address(struct net_device *ndev, void *addr)
{
	int err = eth_mac_addr(ndev, addr);

	if (!err)
		urdma_write_mac(urdma_of(ndev), ndev->dev_addr);
	return err;
}

static const struct net_device_ops urdma_netdev_ops = {
	.ndo_open = urdma_ndo_open,
	.ndo_stop = urdma_ndo_stop,
	.ndo_start_xmit = urdma_ndo_start_xmit,
	.ndo_set_mac_address = urdma_ndo_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
};

static int urdma_get_link_ksettings(struct net_device *ndev, struct ethtool_link_ksettings *cmd)
{
	ethtool_link_ksettings_zero_link_mode(cmd, supported);
	ethtool_link_ksettings_zero_link_mode(cmd, advertising);
	cmd->base.port = PORT_OTHER;
	cmd->base.autoneg = AUTONEG_DISABLE;
	cmd->base.duplex = DUPLEX_FULL;
	cmd->base.speed = urdma_of(ndev)->caps.speed_mbps;
	return 0;
}

static void urdma_get_drvinfo(struct net_device *ndev, struct ethtool_drvinfo *info)
{
	struct urdma_dev *dev = urdma_of(ndev);

	strscpy(info->driver, URDMA_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(dev->pdev), sizeof(info->bus_info));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u", URDMA_VERSION_MAJOR,
		 dev->caps.version_minor);
}

static const struct ethtool_ops urdma_ethtool_ops = {
	.get_drvinfo = urdma_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = urdma_get_link_ksettings,
};

int urdma_netdev_init(struct urdma_dev *dev)
{
	struct urdma_netdev_priv *priv;
	struct net_device *ndev;
	u64 mac = urdma_read(dev, URDMA_REG_MAC);
	u8 addr[ETH_ALEN];
	int err, i;

	ndev = alloc_etherdev(sizeof(*priv));
	if (!ndev)
		return -ENOMEM;
	priv = netdev_priv(ndev);
	priv->dev = dev;
	SET_NETDEV_DEV(ndev, &dev->pdev->dev);
	ndev->netdev_ops = &urdma_netdev_ops;
	ndev->ethtool_ops = &urdma_ethtool_ops;
	ndev->min_mtu = ETH_MIN_MTU;
	ndev->max_mtu = URDMA_MAX_MTU;
	for (i = 0; i < ETH_ALEN; i++)
		addr[i] = mac >> (8 * i);
	if (is_valid_ether_addr(addr)) {
		eth_hw_addr_set(ndev, addr);
	} else {
		eth_hw_addr_random(ndev);
		urdma_write_mac(dev, ndev->dev_addr);
	}
	netif_carrier_off(ndev);
	err = register_netdev(ndev);
	if (err) {
		free_netdev(ndev);
		return err;
	}
	WRITE_ONCE(dev->netdev, ndev);
	/* After it is known to the handler of events, so that no change of the link is missed. */
	urdma_netdev_read_link(dev);
	return 0;
}

void urdma_netdev_exit(struct urdma_dev *dev)
{
	struct net_device *ndev = dev->netdev;

	unregister_netdev(ndev);
	WRITE_ONCE(dev->netdev, NULL);
	urdma_eqs_sync(dev);
	free_netdev(ndev);
}

/* Under the RTNL lock, as all notifiers. */
static int urdma_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct urdma_dev *dev = container_of(nb, struct urdma_dev, netdev_nb);
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct ib_event ev = { .device = &dev->ibdev, .element.port_num = URDMA_PORT };
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
		ev.event = active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
		ib_dispatch_event(&ev);
		break;
	default:
		break;
	}
	return NOTIFY_DONE;
}

/* While the ib_device is registered. Tells at once of the state that the port has already. */
int urdma_netdev_watch(struct urdma_dev *dev)
{
	int err;

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
