// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: address handles. A handle is the address part of a UD send WQE, built once: the NIC has no
 * object for it. The core keeps a reference to the source GID as long as the handle exists.
 */
#include "urdma-abi.h"
#include "urdma.h"

/* The core has resolved the MAC address, for a process too. This does not sleep. */
int urdma_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	const struct rdma_ah_attr *attr = init->ah_attr;
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	struct urdma_create_ah_resp resp = {};
	struct urdma_ah *ah = to_uah(ibah);
	u64 av[ARRAY_SIZE(ah->av)];
	int i;

	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) ||
	    rdma_ah_get_port_num(attr) != URDMA_PORT || !grh->sgid_attr ||
	    rdma_ah_get_sl(attr) > URDMA_MAX_SL)
		return -EINVAL;

	av[0] = urdma_gid_word(&grh->dgid, 0);
	av[1] = urdma_gid_word(&grh->dgid, 1);
	av[2] = FIELD_PREP(URDMA_SQE6_DMAC, urdma_mac_word(attr->roce.dmac)) |
		FIELD_PREP(URDMA_SQE6_TCLASS, grh->traffic_class) |
		FIELD_PREP(URDMA_SQE6_HOP_LIMIT, grh->hop_limit);
	/* The QPs that will use it are not known: the UDP port depends on the flow label only. */
	av[3] = FIELD_PREP(URDMA_SQE7_FLOW_LABEL, grh->flow_label & IB_GRH_FLOWLABEL_MASK) |
		FIELD_PREP(URDMA_SQE7_UDP_SPORT, rdma_flow_label_to_udp_sport(grh->flow_label)) |
		FIELD_PREP(URDMA_SQE7_SGID_INDEX, grh->sgid_attr->index) |
		FIELD_PREP(URDMA_SQE7_PCP, rdma_ah_get_sl(attr));
	for (i = 0; i < ARRAY_SIZE(av); i++) {
		ah->av[i] = cpu_to_le64(av[i]);
		resp.av[2 * i] = lower_32_bits(av[i]);
		resp.av[2 * i + 1] = upper_32_bits(av[i]);
	}
	return udata ? urdma_udata_out(udata, &resp, sizeof(resp)) : 0;
}

int urdma_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	const struct urdma_ah *ah = to_uah(ibah);
	u64 w6 = le64_to_cpu(ah->av[2]);
	u64 w7 = le64_to_cpu(ah->av[3]);

	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, URDMA_PORT);
	rdma_ah_set_sl(attr, FIELD_GET(URDMA_SQE7_PCP, w7));
	rdma_ah_set_grh(attr, NULL, FIELD_GET(URDMA_SQE7_FLOW_LABEL, w7),
			FIELD_GET(URDMA_SQE7_SGID_INDEX, w7), FIELD_GET(URDMA_SQE6_HOP_LIMIT, w6),
			FIELD_GET(URDMA_SQE6_TCLASS, w6));
	memcpy(attr->grh.dgid.raw, ah->av, sizeof(attr->grh.dgid.raw));
	/* The inverse of the conversion into the word. */
	u64_to_ether_addr(swab64(FIELD_GET(URDMA_SQE6_DMAC, w6) << 16), attr->roce.dmac);
	return 0;
}

int urdma_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
