// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: the net device's data path: channels, their rings and interrupts, sending, receiving.
 *
 * The driver does not trust completions: it checks kinds, indexes, numbers of buffers and lengths
 * against what was posted before it uses them. An impossible completion makes the device dead.
 */
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/topology.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>

#include "urdma_eth.h"

/* A queue pair stops within the time of one frame; the clock may be a simulated one. */
#define URDMA_ETH_STOP_TIMEOUT (30 * HZ)
/* Delay of a refill after an allocation of receive buffers has failed. */
#define URDMA_ETH_REFILL_DELAY msecs_to_jiffies(20)
/* Maximum completions of one poll; transmit completions do not count against its budget. */
#define URDMA_ETH_POLL_CQES 512
#define URDMA_ETH_RX_BATCH  32

/*
 * A buffer is a page: headroom for headers that the stack adds; the frame, up to the largest size
 * that fits ETHQ_SIZE; tailroom that an skb needs.
 */
#define URDMA_ETH_HEADROOM (NET_SKB_PAD + NET_IP_ALIGN)
#define URDMA_ETH_TAILROOM SKB_DATA_ALIGN(sizeof(struct skb_shared_info))
#define URDMA_ETH_RX_ROOM  (PAGE_SIZE - URDMA_ETH_HEADROOM - URDMA_ETH_TAILROOM)
#define URDMA_ETH_RX_BUF   (64 * min(URDMA_ETH_RX_ROOM / 64, FIELD_MAX(URDMA_RF_ETHQ_RX_BUF)))

static struct device *urdma_eth_dma_dev(struct urdma_eth_chan *ch)
{
	return &ch->nd->dev->pdev->dev;
}

/* Under the transmit queue's lock. */
static void urdma_eth_xmit_stat(struct urdma_eth_chan *ch, enum urdma_eth_xmit_stat which)
{
	u64_stats_update_begin(&ch->stats->xmit_sync);
	u64_stats_inc(&ch->stats->xmit[which]);
	u64_stats_update_end(&ch->stats->xmit_sync);
}

/* In NAPI. */
static void urdma_eth_poll_stat(struct urdma_eth_chan *ch, enum urdma_eth_poll_stat which)
{
	u64_stats_update_begin(&ch->stats->poll_sync);
	u64_stats_inc(&ch->stats->poll[which]);
	u64_stats_update_end(&ch->stats->poll_sync);
}

void urdma_eth_read_stats(const struct urdma_eth_stats *stats, u64 *xmit, u64 *poll)
{
	unsigned int start;
	int i;

	do {
		start = u64_stats_fetch_begin(&stats->xmit_sync);
		for (i = 0; i < URDMA_XS_N; i++)
			xmit[i] = u64_stats_read(&stats->xmit[i]);
	} while (u64_stats_fetch_retry(&stats->xmit_sync, start));
	do {
		start = u64_stats_fetch_begin(&stats->poll_sync);
		for (i = 0; i < URDMA_PS_N; i++)
			poll[i] = u64_stats_read(&stats->poll[i]);
	} while (u64_stats_fetch_retry(&stats->poll_sync, start));
}

/* ---- sending -------------------------------------------------------------------------------- */

/*
 * Free slots. Either side may call this: its own index is current, the other side's may be old.
 * Writes to a slot come after the load of the consumer index, because they depend on its result.
 */
static u16 urdma_eth_tx_room(const struct urdma_eth_tx *tx)
{
	return tx->mask - (u16)(READ_ONCE(tx->pi) - READ_ONCE(tx->ci));
}

static void urdma_eth_tx_kick(struct urdma_eth_chan *ch)
{
	struct urdma_eth_tx *tx = &ch->tx;

	if (tx->told == tx->pi)
		return;
	tx->told = tx->pi;
	urdma_ring_doorbell(ch->nd->dev, URDMA_DB_ETH_TX, ch->index, URDMA_DB_ARM_NONE, tx->pi);
}

static void urdma_eth_unmap(struct device *d, struct urdma_eth_txi *info)
{
	if (info->page)
		dma_unmap_page(d, info->dma, info->len, DMA_TO_DEVICE);
	else
		dma_unmap_single(d, info->dma, info->len, DMA_TO_DEVICE);
}

/*
 * The offload fields of the first descriptor; false: the frame cannot be prepared. If the
 * checksum's position does not fit the fields, software computes the checksum here.
 */
static bool urdma_eth_tx_offload(struct urdma_eth_chan *ch, struct sk_buff *skb, u64 *w1)
{
	u32 start, at;

	*w1 = 0;
	if (skb_vlan_tag_present(skb))
		*w1 |= URDMA_ETXD1_VLAN | FIELD_PREP(URDMA_ETXD1_TCI, skb_vlan_tag_get(skb));
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return true;
	start = skb_checksum_start_offset(skb);
	at = start + skb->csum_offset;
	if (start > FIELD_MAX(URDMA_ETXD1_CSUM_START) || at > FIELD_MAX(URDMA_ETXD1_CSUM_AT)) {
		urdma_eth_xmit_stat(ch, URDMA_XS_CSUM_SW);
		return !skb_checksum_help(skb);
	}
	urdma_eth_xmit_stat(ch, URDMA_XS_CSUM_HW);
	*w1 |= URDMA_ETXD1_CSUM | FIELD_PREP(URDMA_ETXD1_CSUM_START, start) |
	       FIELD_PREP(URDMA_ETXD1_CSUM_AT, at);
	return true;
}

/*
 * Fill slots from the producer on with the parts of a frame; the caller advances the producer.
 * Returns the number of slots, or an error with nothing left mapped.
 */
static int urdma_eth_tx_fill(struct urdma_eth_chan *ch, struct sk_buff *skb, u64 first)
{
	const u32 frags = skb_shinfo(skb)->nr_frags;
	struct device *d = urdma_eth_dma_dev(ch);
	struct urdma_eth_tx *tx = &ch->tx;
	struct urdma_eth_txi *info = NULL;
	const skb_frag_t *frag;
	u16 slot = tx->pi;
	u64 w1 = 0;
	u32 i, len;

	for (i = 0; i <= frags; i++) {
		frag = i ? &skb_shinfo(skb)->frags[i - 1] : NULL;
		len = frag ? skb_frag_size(frag) : skb_headlen(skb);
		/* A descriptor must not have length 0. */
		if (!len)
			continue;
		info = &tx->info[slot & tx->mask];
		info->skb = NULL;
		info->len = len;
		info->page = frag;
		info->dma = frag ? skb_frag_dma_map(d, frag, 0, len, DMA_TO_DEVICE) :
				   dma_map_single(d, skb->data, len, DMA_TO_DEVICE);
		if (dma_mapping_error(d, info->dma))
			goto err_unmap;
		w1 = FIELD_PREP(URDMA_ETXD1_LENGTH, len) | (slot == tx->pi ? first : 0);
		tx->ring[slot & tx->mask].w[0] = cpu_to_le64(info->dma);
		tx->ring[slot & tx->mask].w[1] = cpu_to_le64(w1);
		slot++;
	}
	info->skb = skb;
	tx->ring[(u16)(slot - 1) & tx->mask].w[1] = cpu_to_le64(w1 | URDMA_ETXD1_LAST);
	return (u16)(slot - tx->pi);

err_unmap:
	while (slot != tx->pi)
		urdma_eth_unmap(d, &tx->info[--slot & tx->mask]);
	return -ENOMEM;
}

/* Under the transmit queue's lock. */
netdev_tx_t urdma_eth_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct urdma_netdev *nd = to_und(ndev);
	struct urdma_eth_chan *ch = nd->chan[skb_get_queue_mapping(skb)];
	struct urdma_eth_tx *tx;
	bool kick;
	u64 first;
	u16 pi;
	int n;

	if (unlikely(!ch)) {
		dev_core_stats_tx_dropped_inc(ndev);
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	tx = &ch->tx;
	if (unlikely(urdma_is_dead(nd->dev) || skb->len < ETH_HLEN ||
		     skb->len > nd->max_bytes))
		goto drop;
	if (unlikely(skb_shinfo(skb)->nr_frags + 1 > nd->max_descs)) {
		urdma_eth_xmit_stat(ch, URDMA_XS_LINEARIZED);
		if (skb_linearize(skb))
			goto drop;
	}
	/*
	 * The queue is stopped while a frame might not fit, so this happens only if it was woken
	 * too early.
	 */
	if (unlikely(urdma_eth_tx_room(tx) < nd->max_descs)) {
		if (!netif_txq_try_stop(ch->txq, urdma_eth_tx_room(tx), nd->max_descs)) {
			urdma_eth_tx_kick(ch);
			return NETDEV_TX_BUSY;
		}
	}
	if (unlikely(!urdma_eth_tx_offload(ch, skb, &first)))
		goto drop;
	n = urdma_eth_tx_fill(ch, skb, first);
	if (unlikely(n < 0)) {
		urdma_eth_xmit_stat(ch, URDMA_XS_DMA_ERR);
		goto drop;
	}

	skb_tx_timestamp(skb);
	/*
	 * Account first: once the new producer is visible, NAPI may find the frame done and free
	 * it.
	 */
	kick = __netdev_tx_sent_queue(ch->txq, skb->len, netdev_xmit_more());
	pi = tx->pi + n;
	/* pairs with the load in urdma_eth_tx_done() */
	smp_store_release(&tx->pi, pi);
	if (!netif_txq_maybe_stop(ch->txq, urdma_eth_tx_room(tx), nd->max_descs, tx->wake)) {
		urdma_eth_xmit_stat(ch, URDMA_XS_STOPPED);
		kick = true;
	}
	if (kick)
		urdma_eth_tx_kick(ch);
	return NETDEV_TX_OK;

drop:
	urdma_eth_xmit_stat(ch, URDMA_XS_DROPPED);
	dev_kfree_skb_any(skb);
	/* Earlier frames may have left the doorbell to this one. */
	if (!netdev_xmit_more() && !urdma_is_dead(nd->dev))
		urdma_eth_tx_kick(ch);
	return NETDEV_TX_OK;
}

/* Frames before INDEX are done. False: INDEX is impossible. */
static bool urdma_eth_tx_done(struct urdma_eth_chan *ch, u64 w0, u16 index, int budget)
{
	struct device *d = urdma_eth_dma_dev(ch);
	struct urdma_eth_tx *tx = &ch->tx;
	u32 packets = 0, bytes = 0;
	struct urdma_eth_txi *info;
	u16 ci = tx->ci;
	u16 pi;

	/* Makes the slots before the producer visible: pairs with the store in urdma_eth_xmit(). */
	pi = smp_load_acquire(&tx->pi);
	if ((u16)(index - ci) > (u16)(pi - ci))
		return false;
	for (; ci != index; ci++) {
		info = &tx->info[ci & tx->mask];
		urdma_eth_unmap(d, info);
		if (!info->skb)
			continue;
		packets++;
		bytes += info->skb->len;
		napi_consume_skb(info->skb, budget);
		info->skb = NULL;
	}
	/* Empties the slots before they become free: pairs with the load in urdma_eth_tx_room(). */
	smp_store_release(&tx->ci, ci);

	u64_stats_update_begin(&ch->stats->poll_sync);
	u64_stats_add(&ch->stats->poll[URDMA_PS_TX_PACKETS], packets);
	u64_stats_add(&ch->stats->poll[URDMA_PS_TX_BYTES], bytes);
	if (w0 & URDMA_ECQE0_ERR)
		u64_stats_inc(&ch->stats->poll[URDMA_PS_TX_ERRORS]);
	u64_stats_update_end(&ch->stats->poll_sync);

	/* During the self test the queues stay stopped for the stack. */
	if (!__netif_txq_completed_wake(ch->txq, packets, bytes, urdma_eth_tx_room(tx), tx->wake,
					READ_ONCE(ch->nd->test)))
		urdma_eth_poll_stat(ch, URDMA_PS_TX_WOKEN);
	return true;
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* Post buffers until the ring is full; false: out of memory. */
static bool urdma_eth_rx_fill(struct urdma_eth_chan *ch, gfp_t gfp)
{
	struct urdma_eth_rx *rx = &ch->rx;
	struct page *page;

	while ((u16)(rx->pi - rx->ci) < rx->mask) {
		page = page_pool_alloc_pages(rx->pool, gfp | __GFP_NOWARN);
		if (!page) {
			urdma_eth_poll_stat(ch, URDMA_PS_RX_ALLOC_FAIL);
			return false;
		}
		rx->page[rx->pi & rx->mask] = page;
		rx->ring[rx->pi & rx->mask] =
			cpu_to_le64(page_pool_get_dma_addr(page) + URDMA_ETH_HEADROOM);
		rx->pi++;
	}
	return true;
}

static void urdma_eth_rx_kick(struct urdma_eth_chan *ch)
{
	struct urdma_eth_rx *rx = &ch->rx;

	if (rx->told == rx->pi)
		return;
	rx->told = rx->pi;
	urdma_ring_doorbell(ch->nd->dev, URDMA_DB_ETH_RX, ch->index, URDMA_DB_ARM_NONE, rx->pi);
}

/*
 * In NAPI: replace used buffers, a batch at a time. Without memory a ring may run empty, and then
 * no frame schedules this poll. So the timer does.
 */
static void urdma_eth_rx_refill(struct urdma_eth_chan *ch)
{
	struct urdma_eth_rx *rx = &ch->rx;

	if (rx->mask - (u16)(rx->pi - rx->ci) < rx->batch)
		return;
	if (!urdma_eth_rx_fill(ch, GFP_ATOMIC))
		mod_timer(&ch->refill, jiffies + URDMA_ETH_REFILL_DELAY);
	urdma_eth_rx_kick(ch);
}

static void urdma_eth_refill_timer(struct timer_list *t)
{
	struct urdma_eth_chan *ch = from_timer(ch, t, refill);

	napi_schedule(&ch->napi);
}

/* The next used buffer, with its bytes visible to the CPU. */
static struct page *urdma_eth_rx_take(struct urdma_eth_chan *ch, u32 len)
{
	struct urdma_eth_rx *rx = &ch->rx;
	struct page *page = rx->page[rx->ci & rx->mask];

	rx->page[rx->ci & rx->mask] = NULL;
	rx->ci++;
	dma_sync_single_range_for_cpu(urdma_eth_dma_dev(ch), page_pool_get_dma_addr(page),
				      URDMA_ETH_HEADROOM, len, DMA_FROM_DEVICE);
	return page;
}

/* Build an skb from the frame's buffers. NULL: no memory, the buffers are back in the pool. */
static struct sk_buff *urdma_eth_rx_skb(struct urdma_eth_chan *ch, u32 len)
{
	u32 part = min_t(u32, len, URDMA_ETH_RX_BUF);
	struct page *page = urdma_eth_rx_take(ch, part);
	struct sk_buff *skb;

	net_prefetch(page_address(page) + URDMA_ETH_HEADROOM);
	skb = napi_build_skb(page_address(page), PAGE_SIZE);
	if (skb) {
		skb_mark_for_recycle(skb);
		skb_reserve(skb, URDMA_ETH_HEADROOM);
		__skb_put(skb, part);
	} else {
		page_pool_put_full_page(ch->rx.pool, page, true);
	}
	for (len -= part; len; len -= part) {
		part = min_t(u32, len, URDMA_ETH_RX_BUF);
		page = urdma_eth_rx_take(ch, part);
		if (skb)
			skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, URDMA_ETH_HEADROOM,
					part, PAGE_SIZE);
		else
			page_pool_put_full_page(ch->rx.pool, page, true);
	}
	return skb;
}

/* A frame was received. False: the completion is impossible. */
static bool urdma_eth_rx(struct urdma_eth_chan *ch, u64 w0, u64 w1)
{
	u32 len = FIELD_GET(URDMA_ECQE0_LENGTH, w0);
	u32 bufs = FIELD_GET(URDMA_ECQE0_BUFS, w0);
	struct net_device *ndev = ch->nd->ndev;
	struct urdma_eth_rx *rx = &ch->rx;
	struct sk_buff *skb;
	u32 type;

	/* A VLAN tag that stays in the frame is not included in eth_max_frame. */
	if ((u16)FIELD_GET(URDMA_ECQE1_INDEX, w1) != rx->ci || len < ETH_HLEN ||
	    len > ch->nd->dev->caps.eth_max_frame + VLAN_HLEN ||
	    bufs != DIV_ROUND_UP(len, URDMA_ETH_RX_BUF) || bufs > MAX_SKB_FRAGS + 1 ||
	    bufs > (u16)(rx->told - rx->ci))
		return false;

	skb = urdma_eth_rx_skb(ch, len);
	if (unlikely(!skb)) {
		urdma_eth_poll_stat(ch, URDMA_PS_RX_DROPPED);
		return true;
	}
	if (ndev->features & NETIF_F_RXCSUM) {
		/* Little-endian words on any CPU, as csum_partial() sums them in memory. */
		skb->ip_summed = CHECKSUM_COMPLETE;
		skb->csum = csum_unfold((__force __sum16)cpu_to_le16(FIELD_GET(URDMA_ECQE0_CSUM,
									       w0)));
	}
	type = FIELD_GET(URDMA_ECQE0_HASH_TYPE, w0);
	if (type && ndev->features & NETIF_F_RXHASH)
		skb_set_hash(skb, FIELD_GET(URDMA_ECQE1_HASH, w1),
			     type == 1 ? PKT_HASH_TYPE_L3 : PKT_HASH_TYPE_L4);
	if (w0 & URDMA_ECQE0_VLAN)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), FIELD_GET(URDMA_ECQE0_TCI, w0));
	skb_record_rx_queue(skb, ch->index);

	if (unlikely(READ_ONCE(ch->nd->test))) {
		urdma_eth_test_rx(ch, skb);
		return true;
	}
	skb->protocol = eth_type_trans(skb, ndev);
	u64_stats_update_begin(&ch->stats->poll_sync);
	u64_stats_inc(&ch->stats->poll[URDMA_PS_RX_PACKETS]);
	u64_stats_add(&ch->stats->poll[URDMA_PS_RX_BYTES], len);
	if (skb->pkt_type == PACKET_MULTICAST)
		u64_stats_inc(&ch->stats->poll[URDMA_PS_RX_MULTICAST]);
	u64_stats_update_end(&ch->stats->poll_sync);
	napi_gro_receive(&ch->napi, skb);
	return true;
}

/* ---- completions ---------------------------------------------------------------------------- */

/* The completion with this index, if it has been written. */
static struct urdma_ecqe *urdma_eth_cqe(struct urdma_eth_chan *ch, u32 index)
{
	struct urdma_ecqe *cqe = &ch->cq[index & ((1U << ch->cq_log) - 1)];
	u64 w3 = le64_to_cpu(READ_ONCE(cqe->w[3]));

	if (FIELD_GET(URDMA_ECQE3_PHASE, w3) != urdma_phase(index, ch->cq_log))
		return NULL;
	/* The NIC wrote the rest of it and the frame before the phase bit. */
	dma_rmb();
	return cqe;
}

static bool urdma_eth_take_cqe(struct urdma_eth_chan *ch, struct urdma_ecqe *cqe, int budget,
			       int *received)
{
	u64 w0 = le64_to_cpu(READ_ONCE(cqe->w[0]));
	u64 w1 = le64_to_cpu(READ_ONCE(cqe->w[1]));

	switch (FIELD_GET(URDMA_ECQE0_KIND, w0)) {
	case URDMA_ECQE_RX:
		(*received)++;
		return urdma_eth_rx(ch, w0, w1);
	case URDMA_ECQE_TX:
		/* Has urdma_eth_poll_tx() already taken it? */
		if ((s32)(ch->cq_tx_seen - ch->cq_ci) > 0)
			return true;
		return urdma_eth_tx_done(ch, w0, FIELD_GET(URDMA_ECQE1_INDEX, w1), budget);
	default:
		return false;
	}
}

/*
 * A poll without a budget (netpoll) must not receive. It takes only transmit completions and skips
 * receive completions, which stay for a poll with a budget. The slots that it frees can cause new
 * completions while the old ones still occupy their entries, so it takes no more than the spare
 * entries.
 */
static bool urdma_eth_poll_tx(struct urdma_eth_chan *ch)
{
	const u32 spare = (1U << ch->cq_log) - (1U << ch->tx_log) - (1U << ch->rx_log);
	struct urdma_ecqe *cqe;
	u64 w0, w1;

	while (ch->cq_tx_seen - ch->cq_ci < spare) {
		cqe = urdma_eth_cqe(ch, ch->cq_tx_seen);
		if (!cqe)
			break;
		w0 = le64_to_cpu(READ_ONCE(cqe->w[0]));
		w1 = le64_to_cpu(READ_ONCE(cqe->w[1]));
		if (FIELD_GET(URDMA_ECQE0_KIND, w0) == URDMA_ECQE_TX) {
			if (!urdma_eth_tx_done(ch, w0, FIELD_GET(URDMA_ECQE1_INDEX, w1), 0))
				return false;
			/* No receive completion is before it, so its entry is free. */
			if (ch->cq_tx_seen == ch->cq_ci)
				ch->cq_ci++;
		}
		ch->cq_tx_seen++;
	}
	return true;
}

static int urdma_eth_poll(struct napi_struct *napi, int budget)
{
	struct urdma_eth_chan *ch = container_of(napi, struct urdma_eth_chan, napi);
	struct urdma_dev *dev = ch->nd->dev;
	struct urdma_ecqe *cqe = NULL;
	int received = 0;
	bool good = true;
	u32 n;

	if (unlikely(!budget)) {
		if (!urdma_is_dead(dev) && !urdma_eth_poll_tx(ch))
			urdma_set_dead(dev, "a completion of frames that were not sent");
		return 0;
	}
	if (unlikely(urdma_is_dead(dev)))
		goto dead;
	urdma_eth_poll_stat(ch, URDMA_PS_POLLS);
	for (n = 0; received < budget && n < URDMA_ETH_POLL_CQES; n++) {
		cqe = urdma_eth_cqe(ch, ch->cq_ci);
		if (!cqe)
			break;
		good = urdma_eth_take_cqe(ch, cqe, budget, &received);
		if (unlikely(!good)) {
			urdma_set_dead(dev, "an impossible completion of an Ethernet queue");
			goto dead;
		}
		ch->cq_ci++;
	}
	/* Keep it from falling so far behind that the difference wraps. */
	if ((s32)(ch->cq_tx_seen - ch->cq_ci) < 0)
		ch->cq_tx_seen = ch->cq_ci;
	urdma_eth_rx_refill(ch);
	/* Are there more completions? */
	if (cqe)
		return budget;
	/* If a completion came after the look above, arming with our index raises the interrupt. */
	if (napi_complete_done(napi, received))
		urdma_ring_doorbell(dev, URDMA_DB_ETH_CQ, ch->index, URDMA_DB_ARM_ANY, ch->cq_ci);
	return received;

dead:
	/* No more completions come; the service stops the channel and frees its buffers. */
	napi_complete_done(napi, min(received, budget - 1));
	return min(received, budget - 1);
}

/* ---- interrupts ----------------------------------------------------------------------------- */

static irqreturn_t urdma_eth_irq(int irq, void *data)
{
	struct urdma_eth_vec *vec = data;
	struct urdma_eth_chan *ch = READ_ONCE(vec->chan);

	if (ch)
		napi_schedule_irqoff(&ch->napi);
	return IRQ_HANDLED;
}

/*
 * The driver holds the vectors from probe to remove, so bringing the device up cannot fail for lack
 * of one.
 */
int urdma_eth_irqs_init(struct urdma_netdev *nd)
{
	struct urdma_dev *dev = nd->dev;
	struct urdma_eth_vec *vec;
	int err, irq;
	u32 i;

	for (i = 0; i < nd->max_chans; i++) {
		vec = &nd->vec[i];
		irq = pci_irq_vector(dev->pdev, dev->num_eqs + i);
		snprintf(vec->name, sizeof(vec->name), URDMA_DRV_NAME "-eth%u@%s", i,
			 pci_name(dev->pdev));
		err = request_irq(irq, urdma_eth_irq, 0, vec->name, vec);
		if (err) {
			urdma_eth_irqs_free(nd);
			return err;
		}
		vec->irq = irq;
		vec->cpu = cpumask_local_spread(i, dev_to_node(&dev->pdev->dev));
		irq_set_affinity_and_hint(irq, cpumask_of(vec->cpu));
	}
	return 0;
}

void urdma_eth_irqs_free(struct urdma_netdev *nd)
{
	struct urdma_eth_vec *vec;
	u32 i;

	for (i = 0; i < nd->max_chans; i++) {
		vec = &nd->vec[i];
		if (!vec->irq)
			continue;
		irq_update_affinity_hint(vec->irq, NULL);
		free_irq(vec->irq, vec);
		vec->irq = 0;
	}
}

/* ---- channels ------------------------------------------------------------------------------- */

/* Bases must be 4 KB aligned; coherent memory of a page or more is. */
static size_t urdma_eth_ring_bytes(u32 entry, u8 log)
{
	return max_t(size_t, (size_t)entry << log, PAGE_SIZE);
}

/* The channel is not started, or only partly allocated. */
static void urdma_eth_chan_free(struct urdma_eth_chan *ch)
{
	struct device *d;

	if (!ch)
		return;
	d = urdma_eth_dma_dev(ch);
	/*
	 * Destroying the pool detaches it from its NAPI, which must be disabled but not yet
	 * deleted.
	 */
	if (ch->rx.pool)
		page_pool_destroy(ch->rx.pool);
	netif_napi_del(&ch->napi);
	if (ch->cq)
		dma_free_coherent(d, urdma_eth_ring_bytes(URDMA_ECQE_SIZE, ch->cq_log), ch->cq,
				  ch->cq_dma);
	if (ch->rx.ring)
		dma_free_coherent(d, urdma_eth_ring_bytes(URDMA_ERXD_SIZE, ch->rx_log), ch->rx.ring,
				  ch->rx.dma);
	if (ch->tx.ring)
		dma_free_coherent(d, urdma_eth_ring_bytes(URDMA_ETXD_SIZE, ch->tx_log), ch->tx.ring,
				  ch->tx.dma);
	kvfree(ch->rx.page);
	kvfree(ch->tx.info);
	kfree(ch);
}

static struct urdma_eth_chan *urdma_eth_chan_alloc(struct urdma_netdev *nd, u32 index, u8 tx_log,
						   u8 rx_log)
{
	struct device *d = &nd->dev->pdev->dev;
	int node = cpu_to_node(nd->vec[index].cpu);
	struct page_pool_params pp = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.pool_size = 1U << rx_log,
		.nid = node,
		.dev = d,
		.dma_dir = DMA_FROM_DEVICE,
		.offset = URDMA_ETH_HEADROOM,
		.max_len = URDMA_ETH_RX_BUF,
		.netdev = nd->ndev,
		.queue_idx = index,
	};
	struct urdma_eth_chan *ch;
	struct urdma_eth_tx *tx;
	struct urdma_eth_rx *rx;

	ch = kzalloc_node(sizeof(*ch), GFP_KERNEL, node);
	if (!ch)
		return NULL;
	ch->nd = nd;
	ch->index = index;
	ch->txq = netdev_get_tx_queue(nd->ndev, index);
	ch->stats = &nd->stats[index];
	ch->tx_log = tx_log;
	ch->rx_log = rx_log;
	/* Entries for both other rings together, and the same number for urdma_eth_poll_tx(). */
	ch->cq_log = max(tx_log, rx_log) + 2;
	timer_setup(&ch->refill, urdma_eth_refill_timer, 0);
	netif_napi_add(nd->ndev, &ch->napi, urdma_eth_poll);
	tx = &ch->tx;
	rx = &ch->rx;
	tx->mask = (1U << tx_log) - 1;
	rx->mask = (1U << rx_log) - 1;
	tx->wake = max(nd->max_descs, min(2 * nd->max_descs, 1U << (tx_log - 1)));
	rx->batch = min(URDMA_ETH_RX_BATCH, 1 << (rx_log - 2));

	tx->info = kvcalloc(1U << tx_log, sizeof(*tx->info), GFP_KERNEL);
	rx->page = kvcalloc(1U << rx_log, sizeof(*rx->page), GFP_KERNEL);
	if (!tx->info || !rx->page)
		goto err_free;
	tx->ring = dma_alloc_coherent(d, urdma_eth_ring_bytes(URDMA_ETXD_SIZE, tx_log), &tx->dma,
				      GFP_KERNEL);
	rx->ring = dma_alloc_coherent(d, urdma_eth_ring_bytes(URDMA_ERXD_SIZE, rx_log), &rx->dma,
				      GFP_KERNEL);
	ch->cq = dma_alloc_coherent(d, urdma_eth_ring_bytes(URDMA_ECQE_SIZE, ch->cq_log),
				    &ch->cq_dma, GFP_KERNEL);
	if (!tx->ring || !rx->ring || !ch->cq)
		goto err_free;
	pp.napi = &ch->napi;
	rx->pool = page_pool_create(&pp);
	if (IS_ERR(rx->pool)) {
		rx->pool = NULL;
		goto err_free;
	}
	return ch;

err_free:
	urdma_eth_chan_free(ch);
	return NULL;
}

static u64 urdma_eth_int_word(const struct urdma_netdev *nd, u32 index)
{
	return FIELD_PREP(URDMA_RF_ETHQ_VECTOR, nd->dev->num_eqs + index) |
	       FIELD_PREP(URDMA_RF_ETHQ_RX_FRAMES, nd->coal.rx_frames) |
	       FIELD_PREP(URDMA_RF_ETHQ_TX_FRAMES, nd->coal.tx_frames) |
	       FIELD_PREP(URDMA_RF_ETHQ_RX_USECS, nd->coal.rx_usecs) |
	       FIELD_PREP(URDMA_RF_ETHQ_TX_USECS, nd->coal.tx_usecs);
}

/* Write the interrupt moderation of all existing channels. */
void urdma_eth_write_int(struct urdma_netdev *nd)
{
	u32 i;

	if (urdma_is_dead(nd->dev))
		return;
	for (i = 0; i < nd->num_chans; i++)
		if (nd->chan[i])
			urdma_write(nd->dev, urdma_ethq_reg(i, URDMA_ETHQ_INT),
				    urdma_eth_int_word(nd, i));
}

/* Wait until these bits of ETHQ_CTRL are clear. On a time-out the device is dead. */
static void urdma_eth_wait(struct urdma_eth_chan *ch, u64 bits)
{
	unsigned long end = jiffies + URDMA_ETH_STOP_TIMEOUT;
	struct urdma_dev *dev = ch->nd->dev;
	u64 ctrl;

	while (!urdma_is_dead(dev)) {
		ctrl = urdma_read(dev, urdma_ethq_reg(ch->index, URDMA_ETHQ_CTRL));
		if (!(ctrl & bits))
			return;
		if (ctrl == ~0ULL && urdma_is_gone(dev))
			urdma_set_dead(dev, "gone");
		else if (time_after(jiffies, end))
			urdma_set_dead(dev, "an Ethernet queue pair does not stop");
		else
			usleep_range(50, 100);
	}
}

/* When this returns, the NIC does no more DMA to the channel's memory, or the device is dead. */
static void urdma_eth_hw_stop(struct urdma_eth_chan *ch)
{
	struct urdma_dev *dev = ch->nd->dev;
	u32 ctrl = urdma_ethq_reg(ch->index, URDMA_ETHQ_CTRL);

	if (urdma_is_dead(dev))
		return;
	urdma_write(dev, ctrl, URDMA_RF_ETHQ_CQ_ENABLE);
	urdma_eth_wait(ch, URDMA_RF_ETHQ_TX_ACTIVE | URDMA_RF_ETHQ_RX_ACTIVE);
	if (urdma_is_dead(dev))
		return;
	urdma_write(dev, ctrl, 0);
	urdma_eth_wait(ch, URDMA_RF_ETHQ_CQ_ACTIVE);
}

static void urdma_eth_hw_start(struct urdma_eth_chan *ch)
{
	const u64 all = URDMA_RF_ETHQ_CQ_ENABLE | URDMA_RF_ETHQ_TX_ENABLE | URDMA_RF_ETHQ_RX_ENABLE;
	struct urdma_dev *dev = ch->nd->dev;
	u32 q = ch->index;

	BUILD_BUG_ON(URDMA_ETH_RX_BUF / 64 > FIELD_MAX(URDMA_RF_ETHQ_RX_BUF));
	if (urdma_is_dead(dev))
		return;
	urdma_write(dev, urdma_ethq_reg(q, URDMA_ETHQ_TX_BASE), ch->tx.dma);
	urdma_write(dev, urdma_ethq_reg(q, URDMA_ETHQ_RX_BASE), ch->rx.dma);
	urdma_write(dev, urdma_ethq_reg(q, URDMA_ETHQ_CQ_BASE), ch->cq_dma);
	urdma_write(dev, urdma_ethq_reg(q, URDMA_ETHQ_SIZE),
		    FIELD_PREP(URDMA_RF_ETHQ_LOG_TX, ch->tx_log) |
			    FIELD_PREP(URDMA_RF_ETHQ_LOG_RX, ch->rx_log) |
			    FIELD_PREP(URDMA_RF_ETHQ_LOG_CQ, ch->cq_log) |
			    FIELD_PREP(URDMA_RF_ETHQ_RX_BUF, URDMA_ETH_RX_BUF / 64));
	urdma_write(dev, urdma_ethq_reg(q, URDMA_ETHQ_INT), urdma_eth_int_word(ch->nd, q));
	urdma_write(dev, urdma_ethq_reg(q, URDMA_ETHQ_CTRL), URDMA_RF_ETHQ_CQ_ENABLE);
	urdma_write(dev, urdma_ethq_reg(q, URDMA_ETHQ_CTRL), all);
	/* ENABLE stays 0 if the side is still active, which must not happen. */
	if ((urdma_read(dev, urdma_ethq_reg(q, URDMA_ETHQ_CTRL)) & all) != all)
		urdma_set_dead(dev, "an Ethernet queue pair does not start");
}

/*
 * Start a channel with empty rings and posted receive buffers. Its transmit queue stays stopped.
 * This can fail only if the device dies.
 */
static void urdma_eth_chan_start(struct urdma_eth_chan *ch)
{
	struct urdma_eth_vec *vec = &ch->nd->vec[ch->index];

	memset(ch->cq, 0, urdma_eth_ring_bytes(URDMA_ECQE_SIZE, ch->cq_log));
	ch->cq_ci = 0;
	ch->cq_tx_seen = 0;
	ch->tx.pi = 0;
	ch->tx.told = 0;
	ch->tx.ci = 0;
	ch->rx.pi = 0;
	ch->rx.told = 0;
	ch->rx.ci = 0;
	/* NAPI posts the missing buffers, now or when there is memory. */
	urdma_eth_rx_fill(ch, GFP_KERNEL);
	urdma_eth_hw_start(ch);
	if (!urdma_is_dead(ch->nd->dev))
		urdma_eth_rx_kick(ch);

	netif_queue_set_napi(ch->nd->ndev, ch->index, NETDEV_QUEUE_TYPE_RX, &ch->napi);
	netif_queue_set_napi(ch->nd->ndev, ch->index, NETDEV_QUEUE_TYPE_TX, &ch->napi);
	netif_napi_set_irq(&ch->napi, vec->irq);
	napi_enable(&ch->napi);
	WRITE_ONCE(vec->chan, ch);
	/* The first poll arms the interrupt. */
	local_bh_disable();
	napi_schedule(&ch->napi);
	local_bh_enable();
}

/*
 * Stop a channel and free the contents of its rings. NAPI is stopped first, so that it cannot wake
 * the transmit queue again; then the transmit queue, which stays stopped; then the hardware.
 */
static void urdma_eth_chan_stop(struct urdma_eth_chan *ch)
{
	struct urdma_eth_vec *vec = &ch->nd->vec[ch->index];
	struct device *d = urdma_eth_dma_dev(ch);
	struct urdma_eth_tx *tx = &ch->tx;
	struct urdma_eth_rx *rx = &ch->rx;
	struct urdma_eth_txi *info;

	napi_disable(&ch->napi);
	timer_delete_sync(&ch->refill);
	__netif_tx_lock_bh(ch->txq);
	netif_tx_stop_queue(ch->txq);
	/* Keep the watchdog from reporting a hung queue. */
	txq_trans_cond_update(ch->txq);
	__netif_tx_unlock_bh(ch->txq);
	urdma_eth_hw_stop(ch);
	WRITE_ONCE(vec->chan, NULL);
	synchronize_irq(vec->irq);
	netif_queue_set_napi(ch->nd->ndev, ch->index, NETDEV_QUEUE_TYPE_RX, NULL);
	netif_queue_set_napi(ch->nd->ndev, ch->index, NETDEV_QUEUE_TYPE_TX, NULL);

	for (; tx->ci != tx->pi; tx->ci++) {
		info = &tx->info[tx->ci & tx->mask];
		urdma_eth_unmap(d, info);
		dev_kfree_skb_any(info->skb);
		info->skb = NULL;
	}
	netdev_tx_reset_queue(ch->txq);
	for (; rx->ci != rx->pi; rx->ci++) {
		page_pool_put_full_page(rx->pool, rx->page[rx->ci & rx->mask], false);
		rx->page[rx->ci & rx->mask] = NULL;
	}
}

static void urdma_eth_free_all(struct urdma_eth_chan **chan)
{
	u32 i;

	for (i = 0; i < URDMA_ETH_MAX_QUEUES; i++) {
		urdma_eth_chan_free(chan[i]);
		chan[i] = NULL;
	}
}

static int urdma_eth_alloc_all(struct urdma_netdev *nd, struct urdma_eth_chan **chan, u32 n,
			       u8 tx_log, u8 rx_log)
{
	u32 i;

	for (i = 0; i < n; i++) {
		chan[i] = urdma_eth_chan_alloc(nd, i, tx_log, rx_log);
		if (!chan[i]) {
			urdma_eth_free_all(chan);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Start every channel, then enable reception. */
static void urdma_eth_start_all(struct urdma_netdev *nd)
{
	u32 i;

	for (i = 0; i < nd->num_chans; i++) {
		urdma_eth_chan_start(nd->chan[i]);
		netif_set_xps_queue(nd->ndev, cpumask_of(nd->vec[i].cpu), i);
	}
	/* This also serves all requests to restart a queue. */
	WRITE_ONCE(nd->restart, 0);
	urdma_eth_write_rss(nd);
	set_bit(URDMA_ETH_F_UP, &nd->flags);
	urdma_eth_write_ctrl(nd);
}

static void urdma_eth_stop_all(struct urdma_netdev *nd)
{
	u32 i;

	clear_bit(URDMA_ETH_F_UP, &nd->flags);
	urdma_eth_write_ctrl(nd);
	for (i = 0; i < nd->num_chans; i++)
		urdma_eth_chan_stop(nd->chan[i]);
	/* Also stop queues without a channel: they may be about to get one. */
	netif_tx_disable(nd->ndev);
}

/*
 * Create and start the channels. Leaves the transmit queues stopped. This and the next functions
 * run under RTNL.
 */
int urdma_eth_up(struct urdma_netdev *nd)
{
	int err;

	if (urdma_is_dead(nd->dev))
		return -EIO;
	err = urdma_eth_alloc_all(nd, nd->chan, nd->num_chans, nd->tx_log, nd->rx_log);
	if (err)
		return err;
	urdma_eth_start_all(nd);
	if (urdma_is_dead(nd->dev)) {
		urdma_eth_down(nd);
		return -EIO;
	}
	return 0;
}

/*
 * May be called with the channels down: bringing them up after the self test may have failed, or
 * the device may have died.
 */
void urdma_eth_down(struct urdma_netdev *nd)
{
	if (!test_bit(URDMA_ETH_F_UP, &nd->flags))
		return;
	urdma_eth_stop_all(nd);
	urdma_eth_free_all(nd->chan);
}

/*
 * Change the numbers of channels and slots. If the device is up, the new channels are allocated
 * before the old ones are stopped, so it stays up unchanged if there is no memory.
 */
int urdma_eth_reconfig(struct urdma_netdev *nd, u32 chans, u8 tx_log, u8 rx_log)
{
	struct urdma_eth_chan *chan[URDMA_ETH_MAX_QUEUES] = {};
	bool up = test_bit(URDMA_ETH_F_UP, &nd->flags);
	int err;
	u32 i;

	if (up) {
		if (urdma_is_dead(nd->dev))
			return -EIO;
		err = urdma_eth_alloc_all(nd, chan, chans, tx_log, rx_log);
		if (err)
			return err;
		urdma_eth_stop_all(nd);
	}
	err = netif_set_real_num_queues(nd->ndev, chans, chans);
	if (!err) {
		for (i = 0; i < URDMA_ETH_MAX_QUEUES; i++)
			swap(nd->chan[i], chan[i]);
		/* Unless the user has set the RSS table, it follows the number of channels. */
		if (chans != nd->num_chans && !netif_is_rxfh_configured(nd->ndev))
			urdma_eth_rss_default(nd, chans);
		nd->num_chans = chans;
		nd->tx_log = tx_log;
		nd->rx_log = rx_log;
	}
	if (up) {
		/* the old ones, or on error the new ones */
		urdma_eth_free_all(chan);
		urdma_eth_start_all(nd);
		netif_tx_wake_all_queues(nd->ndev);
	}
	return err;
}

/* Stop a channel and start it again, with empty rings. Under RTNL, with the device up. */
void urdma_eth_restart(struct urdma_netdev *nd, u32 queue)
{
	struct urdma_eth_chan *ch = nd->chan[queue];

	urdma_eth_chan_stop(ch);
	urdma_eth_chan_start(ch);
	netif_tx_wake_queue(ch->txq);
}
