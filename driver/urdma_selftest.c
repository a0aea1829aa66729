// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: the self test of the net device (ethtool -t). Under the RTNL lock, except the NAPI part.
 */
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/random.h>

#include "urdma_eth.h"

/* Time-out of a frame that the NIC loops back; its clock may be a simulated one. */
#define URDMA_ETH_TEST_TIMEOUT (10 * HZ)

const char urdma_test_names[URDMA_TEST_N][ETH_GSTRING_LEN] = {
	[URDMA_TEST_LINK] = "Link            (online)",
	[URDMA_TEST_COMMAND] = "Command         (online)",
	[URDMA_TEST_INTERRUPT] = "Interrupt       (online)",
	[URDMA_TEST_REGISTERS] = "Registers       (offline)",
	[URDMA_TEST_LOOPBACK] = "Loopback        (offline)",
};

/* Checks that a NOP command is answered and that its completion raises EQ 0's interrupt. */
static void urdma_test_command(struct urdma_dev *dev, u64 *result)
{
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_NOP, 0) };
	u32 irqs = READ_ONCE(dev->eqs[0].irqs);
	int i;

	result[URDMA_TEST_COMMAND] = !!urdma_cmd_exec(dev, cmd, NULL);
	/* A waiter for a command also polls, so it may return before the interrupt. */
	for (i = 0; i < 100 && READ_ONCE(dev->eqs[0].irqs) == irqs; i++)
		usleep_range(10000, 11000);
	result[URDMA_TEST_INTERRUPT] = READ_ONCE(dev->eqs[0].irqs) == irqs;
}

/* Checks that each register holds its own value; these have no effect without received frames. */
static bool urdma_test_registers(struct urdma_netdev *nd)
{
	static const struct {
		u32 reg;
		u32 words;
		u64 bits;
	} all[] = {
		{ URDMA_REG_ETH_RSS_KEY, URDMA_ETH_RSS_KEY_WORDS, ~0ULL },
		{ URDMA_REG_ETH_UC, 0, URDMA_RF_ETH_UC_ADDR | URDMA_RF_ETH_UC_VALID },
		{ URDMA_REG_ETH_MC_HASH, URDMA_ETH_MC_HASH_WORDS, ~0ULL },
		{ URDMA_REG_ETH_VLAN, URDMA_ETH_VLAN_WORDS, ~0ULL },
		/* only queue 0, which every NIC has */
		{ URDMA_REG_ETH_RSS_TABLE, URDMA_ETH_RSS_TABLE_WORDS, 0 },
	};
	static const u64 pattern[] = {
		0x5555555555555555ULL, 0xaaaaaaaaaaaaaaaaULL, 0x0123456789abcdefULL, 0,
	};
	struct urdma_dev *dev = nd->dev;
	u32 i, k, p, words;
	bool good = true;
	u64 want, got;

	for (p = 0; p < ARRAY_SIZE(pattern); p++) {
		for (i = 0; i < ARRAY_SIZE(all); i++) {
			words = all[i].words ?: dev->caps.eth_uc;
			for (k = 0; k < words; k++)
				urdma_write(dev, all[i].reg + 8 * k,
					    rol64(pattern[p], k) & all[i].bits);
		}
		for (i = 0; i < ARRAY_SIZE(all); i++) {
			words = all[i].words ?: dev->caps.eth_uc;
			for (k = 0; k < words; k++) {
				want = rol64(pattern[p], k) & all[i].bits;
				got = urdma_read(dev, all[i].reg + 8 * k);
				if (got == want)
					continue;
				netdev_err(nd->ndev, "register %#x: %#llx, not %#llx\n",
					   all[i].reg + 8 * k, got, want);
				good = false;
			}
		}
	}
	return good;
}

/* Compares a received frame with test->skb; the NIC pads a short frame with zeros. */
static int urdma_test_compare(struct urdma_eth_chan *ch, struct urdma_eth_test *test,
			      struct sk_buff *skb)
{
	const u32 len = test->skb->len;

	if (skb->len != max_t(u32, len, ETH_ZLEN))
		return -EMSGSIZE;
	if (ch->index != test->queue)
		return -EXDEV;
	if (skb_copy_bits(skb, 0, test->buf, skb->len))
		return -EFAULT;
	if (memcmp(test->buf, test->skb->data, len) ||
	    (len < ETH_ZLEN && memchr_inv(test->buf + len, 0, ETH_ZLEN - len)))
		return -EILSEQ;
	if (skb->ip_summed == CHECKSUM_COMPLETE &&
	    csum_fold(skb->csum) !=
		    csum_fold(csum_partial(test->buf + ETH_HLEN, skb->len - ETH_HLEN, 0)))
		return -EBADMSG;
	return 0;
}

/* In NAPI: a frame was received while test is set. All other frames are dropped. */
void urdma_eth_test_rx(struct urdma_eth_chan *ch, struct sk_buff *skb)
{
	struct urdma_eth_test *test = ch->nd->test;

	/* Its destination and random source address identify the test frame. */
	if (!completion_done(&test->done) && skb_headlen(skb) >= ETH_HLEN &&
	    !memcmp(skb->data, test->skb->data, ETH_HLEN)) {
		test->err = urdma_test_compare(ch, test, skb);
		complete(&test->done);
	}
	dev_kfree_skb_any(skb);
}

/* Sends one frame from a queue to another, in the given number of fragments. */
static int urdma_test_frame(struct urdma_netdev *nd, u32 from, u32 to, u32 len, u32 pieces)
{
	struct net_device *ndev = nd->ndev;
	struct urdma_eth_test *test = nd->test;
	struct netdev_queue *txq = netdev_get_tx_queue(ndev, from);
	u32 linear = pieces > 1 ? min(len, 64U) : len;
	u32 off, n, piece;
	struct sk_buff *skb;
	struct ethhdr *eth;
	struct page *page;
	int err = -ENOMEM;
	bool sent;

	test->skb = alloc_skb(max_t(u32, len, ETH_ZLEN), GFP_KERNEL);
	if (!test->skb)
		return -ENOMEM;
	eth = skb_put(test->skb, len);
	get_random_bytes(eth, len);
	ether_addr_copy(eth->h_dest, ndev->dev_addr);
	eth_random_addr(eth->h_source);
	eth->h_proto = htons(ETH_P_LOOPBACK);

	skb = alloc_skb(linear, GFP_KERNEL);
	if (!skb)
		goto out;
	skb_put_data(skb, test->skb->data, linear);
	piece = pieces > 1 ? DIV_ROUND_UP(len - linear, pieces - 1) : 0;
	for (off = linear; off < len; off += n) {
		n = min3(len - off, piece, (u32)PAGE_SIZE);
		page = alloc_page(GFP_KERNEL);
		if (!page) {
			kfree_skb(skb);
			goto out;
		}
		memcpy(page_address(page), test->skb->data + off, n);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, n, PAGE_SIZE);
	}
	skb->dev = ndev;
	skb_set_queue_mapping(skb, from);

	test->queue = to;
	test->err = -ETIMEDOUT;
	reinit_completion(&test->done);
	__netif_tx_lock_bh(txq);
	sent = netdev_start_xmit(skb, ndev, txq, false) == NETDEV_TX_OK;
	__netif_tx_unlock_bh(txq);
	if (sent)
		wait_for_completion_timeout(&test->done, URDMA_ETH_TEST_TIMEOUT);
	else
		kfree_skb(skb);
	/* No frame is expected from now on; wait for a comparison that may still be running. */
	complete(&test->done);
	for (n = 0; n < nd->num_chans; n++)
		napi_synchronize(&nd->chan[n]->napi);
	err = sent ? test->err : -EBUSY;
out:
	if (err)
		netdev_err(ndev, "self test: %u bytes in %u pieces, queue %u to %u: %d\n", len,
			   pieces, from, to, err);
	kfree_skb(test->skb);
	test->skb = NULL;
	return err;
}

/* From every queue to every queue: short and long frames, in one piece and in several. */
static bool urdma_test_loopback(struct urdma_netdev *nd)
{
	const u32 longest = nd->ndev->max_mtu + ETH_HLEN;
	static const u32 len[] = { ETH_HLEN + 1, ETH_ZLEN, 61, 64, 65, 1500, 1514 };
	u32 from, to, i;

	for (to = 0; to < nd->num_chans; to++) {
		/* Frames without a hash use entry 0. */
		urdma_write(nd->dev, URDMA_REG_ETH_RSS_TABLE, to);
		for (from = 0; from < nd->num_chans; from++) {
			for (i = 0; i < ARRAY_SIZE(len); i++)
				if (urdma_test_frame(nd, from, to, len[i], 1))
					return false;
			if (urdma_test_frame(nd, from, to, longest, 1) ||
			    urdma_test_frame(nd, from, to, 1514, min(nd->max_descs, 3U)) ||
			    urdma_test_frame(nd, from, to, longest, nd->max_descs))
				return false;
		}
	}
	return true;
}

/*
 * The register test runs with the channels down. The loopback test then starts channels whose
 * frames go to the test. The stack cannot use the transmit queues meanwhile.
 */
static void urdma_test_offline(struct urdma_netdev *nd, u64 *result)
{
	struct urdma_eth_test test = {};
	bool up = test_bit(URDMA_ETH_F_UP, &nd->flags);
	int err;

	test.buf = kmalloc(nd->dev->caps.eth_max_frame + VLAN_HLEN, GFP_KERNEL);
	if (!test.buf) {
		result[URDMA_TEST_REGISTERS] = 1;
		result[URDMA_TEST_LOOPBACK] = 1;
		return;
	}
	init_completion(&test.done);
	if (up)
		urdma_eth_down(nd);

	/* No frame is expected yet. */
	complete(&test.done);
	/* The lock waits for a running filter update; none starts until the test ends. */
	netif_addr_lock_bh(nd->ndev);
	WRITE_ONCE(nd->test, &test);
	netif_addr_unlock_bh(nd->ndev);
	result[URDMA_TEST_REGISTERS] = !urdma_test_registers(nd);
	err = urdma_eth_up(nd);
	result[URDMA_TEST_LOOPBACK] = err || !urdma_test_loopback(nd);
	if (!err)
		urdma_eth_down(nd);
	WRITE_ONCE(nd->test, NULL);
	kfree(test.buf);

	urdma_eth_write_filters(nd);
	urdma_eth_write_rss(nd);
	urdma_eth_write_ctrl(nd);
	if (!up)
		return;
	err = urdma_eth_up(nd);
	if (err) {
		netdev_err(nd->ndev, "cannot be brought up again after the self test: %d\n", err);
		dev_close(nd->ndev);
		return;
	}
	netif_tx_wake_all_queues(nd->ndev);
}

void urdma_self_test(struct net_device *ndev, struct ethtool_test *etest, u64 *result)
{
	struct urdma_netdev *nd = to_und(ndev);
	int i;

	memset(result, 0, URDMA_TEST_N * sizeof(*result));
	if (urdma_is_dead(nd->dev)) {
		memset(result, 0xff, URDMA_TEST_N * sizeof(*result));
		etest->flags |= ETH_TEST_FL_FAILED;
		return;
	}
	if (etest->flags & ETH_TEST_FL_OFFLINE)
		urdma_test_offline(nd, result);
	result[URDMA_TEST_LINK] = !(urdma_read(nd->dev, URDMA_REG_STATUS) & URDMA_RF_STATUS_LINK);
	urdma_test_command(nd->dev, result);
	for (i = 0; i < URDMA_TEST_N; i++)
		if (result[i])
			etest->flags |= ETH_TEST_FL_FAILED;
}
