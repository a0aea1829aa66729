// SPDX-License-Identifier: Apache-2.0
/*
 * qstats NETDEV: prints the statistics of a net device that netlink provides (netdev.yaml,
 * qstats-get), one per line: "total rx-packets 12", "rx 0 rx-packets 7". No program in the guest's
 * packages reads them.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netdev.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
	unsigned int attr;
	const char *name;
} names[] = {
	{ NETDEV_A_QSTATS_RX_PACKETS, "rx-packets" },
	{ NETDEV_A_QSTATS_RX_BYTES, "rx-bytes" },
	{ NETDEV_A_QSTATS_TX_PACKETS, "tx-packets" },
	{ NETDEV_A_QSTATS_TX_BYTES, "tx-bytes" },
	{ NETDEV_A_QSTATS_TX_NEEDS_CSUM, "tx-needs-csum" },
};

struct message {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	uint8_t attrs[128];
};

static void die(const char *what)
{
	fprintf(stderr, "qstats: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(struct message *m, unsigned int type, const void *data, size_t len)
{
	struct nlattr *a = (struct nlattr *)((uint8_t *)m + m->nl.nlmsg_len);

	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy((uint8_t *)a + NLA_HDRLEN, data, len);
	m->nl.nlmsg_len += NLA_ALIGN(a->nla_len);
}

static void ask(int fd, struct message *m, unsigned int family, unsigned int cmd,
		unsigned int flags)
{
	m->nl.nlmsg_type = (uint16_t)family;
	m->nl.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	m->genl.cmd = (uint8_t)cmd;
	m->genl.version = 1;
	if (send(fd, m, m->nl.nlmsg_len, 0) != (ssize_t)m->nl.nlmsg_len)
		die("send");
}

/* The attribute of a message, or NULL. */
static const void *find(const struct nlmsghdr *nl, unsigned int type)
{
	const uint8_t *p = (const uint8_t *)NLMSG_DATA(nl) + GENL_HDRLEN;
	const uint8_t *end = (const uint8_t *)nl + nl->nlmsg_len;

	while (end - p >= NLA_HDRLEN) {
		const struct nlattr *a = (const struct nlattr *)p;

		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return p + NLA_HDRLEN;
		p += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static uint64_t number(const struct nlmsghdr *nl, unsigned int type)
{
	const void *p = find(nl, type);
	const struct nlattr *a =
		p ? (const struct nlattr *)((const uint8_t *)p - NLA_HDRLEN) : NULL;
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, a->nla_len - NLA_HDRLEN);
	return value;
}

static void print(const struct nlmsghdr *nl)
{
	const void *type = find(nl, NETDEV_A_QSTATS_QUEUE_TYPE);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!find(nl, names[i].attr))
			continue;
		if (type)
			printf("%s %u ",
			       number(nl, NETDEV_A_QSTATS_QUEUE_TYPE) == NETDEV_QUEUE_TYPE_RX
				       ? "rx"
				       : "tx",
			       (unsigned int)number(nl, NETDEV_A_QSTATS_QUEUE_ID));
		else
			printf("total ");
		printf("%s %llu\n", names[i].name, (unsigned long long)number(nl, names[i].attr));
	}
}

/* Reads all answers; returns the family's number, if there is one. */
static unsigned int answers(int fd, bool dump)
{
	static uint8_t buf[65536] __attribute__((aligned(8)));
	unsigned int family = 0;

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n <= 0)
			die("recv");
		for (struct nlmsghdr *nl = (struct nlmsghdr *)buf; NLMSG_OK(nl, n);
		     nl = NLMSG_NEXT(nl, n)) {
			if (nl->nlmsg_type == NLMSG_DONE)
				return family;
			if (nl->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(nl))->error;
				die("the kernel refuses");
			}
			if (!dump)
				return (unsigned int)number(nl, CTRL_ATTR_FAMILY_ID);
			print(nl);
		}
	}
}

int main(int argc, char **argv)
{
	struct message family = { .nl.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) };
	uint32_t index = argc == 2 ? if_nametoindex(argv[1]) : 0, scope = NETDEV_QSTATS_SCOPE_QUEUE;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	unsigned int id;

	if (!index || fd < 0)
		die("usage: qstats NETDEV");
	put(&family, CTRL_ATTR_FAMILY_NAME, NETDEV_FAMILY_NAME, sizeof(NETDEV_FAMILY_NAME));
	ask(fd, &family, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	id = answers(fd, false);
	for (unsigned int queues = 0; queues < 2; queues++) {
		struct message m = { .nl.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) };

		put(&m, NETDEV_A_QSTATS_IFINDEX, &index, sizeof(index));
		if (queues)
			put(&m, NETDEV_A_QSTATS_SCOPE, &scope, sizeof(scope));
		ask(fd, &m, id, NETDEV_CMD_QSTATS_GET, NLM_F_DUMP);
		answers(fd, true);
	}
	return 0;
}
