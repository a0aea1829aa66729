// SPDX-License-Identifier: Apache-2.0
/*
 * smc eid NAME: gives the kernel's SMC an enterprise ID, which it needs for version 2.
 *
 * smc server ADDRESS CONNECTIONS MESSAGES: sends back this many messages of each connection; all
 * connections exist at the same time.
 *
 * smc client SERVER CONNECTIONS MESSAGES: sends messages of many lengths and compares what comes
 * back. It prints "connected" when all connections exist, and continues when it has read a line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/smc.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif
/* The protocol number of SMC over IPv4. */
#define SMC_OVER_IPV4	0
#define PORT		18800
#define LENGTH		(1u << 20)
#define MAX_CONNECTIONS 16

static uint8_t sent[LENGTH], got[LENGTH];

static void die(const char *what)
{
	fprintf(stderr, "smc: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the enterprise ID ------------------------------------------------------------------------
 */
struct request {
	struct nlmsghdr n;
	struct genlmsghdr g;
	char room[256];
};

static void attribute(struct request *r, uint16_t type, const void *data, size_t length)
{
	struct nlattr *a = (struct nlattr *)((char *)r + NLMSG_ALIGN(r->n.nlmsg_len));

	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + length);
	memcpy((char *)a + NLA_HDRLEN, data, length);
	r->n.nlmsg_len = NLMSG_ALIGN(r->n.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

/* One request of generic netlink. The answer replaces it: an acknowledgement, or a message. */
static void ask_kernel(int s, struct request *r, uint16_t family, uint8_t command, const char *what)
{
	union {
		struct nlmsghdr n;
		char room[4096];
	} answer;
	struct nlmsgerr *e = NLMSG_DATA(&answer.n);
	ssize_t n;

	r->n.nlmsg_type = family;
	r->n.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	r->g.cmd = command;
	r->g.version = 1;
	if (send(s, r, r->n.nlmsg_len, 0) < 0)
		die(what);
	n = recv(s, &answer, sizeof(answer), 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*e)))
		die(what);
	if (answer.n.nlmsg_type == NLMSG_ERROR && e->error) {
		errno = -e->error;
		die(what);
	}
	memcpy(r, &answer, (size_t)n < sizeof(*r) ? (size_t)n : sizeof(*r));
	/* The acknowledgement of a request that a message answered. */
	if (answer.n.nlmsg_type != NLMSG_ERROR && recv(s, &answer, sizeof(answer), 0) < 0)
		die(what);
}

static uint16_t family_of(int s, const char *name)
{
	struct request r = { .n.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) };
	char *end, *a;

	attribute(&r, CTRL_ATTR_FAMILY_NAME, name, strlen(name) + 1);
	ask_kernel(s, &r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, name);
	end = (char *)&r + (r.n.nlmsg_len < sizeof(r) ? r.n.nlmsg_len : sizeof(r));
	for (a = (char *)&r + NLMSG_LENGTH(GENL_HDRLEN); a + NLA_HDRLEN < end;
	     a += NLA_ALIGN(((struct nlattr *)a)->nla_len))
		if (((struct nlattr *)a)->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)(a + NLA_HDRLEN);
	errno = ENOENT;
	die(name);
	return 0;
}

static void add_eid(const char *name)
{
	struct request r = { .n.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) };
	char eid[SMC_MAX_EID_LEN + 1];
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);

	if (s < 0)
		die("netlink");
	/* Names have their maximum length, padded with blanks. */
	memset(eid, ' ', SMC_MAX_EID_LEN);
	memcpy(eid, name, strnlen(name, SMC_MAX_EID_LEN));
	eid[SMC_MAX_EID_LEN] = 0;
	attribute(&r, SMC_NLA_EID_TABLE_ENTRY, eid, sizeof(eid));
	ask_kernel(s, &r, family_of(s, SMC_GENL_FAMILY_NAME), SMC_NETLINK_ADD_UEID,
		   "enterprise ID");
	close(s);
}

/* ---- messages: a length of four bytes, then so many ---------------------------------------------
 */
static void put(int s, const void *data, size_t length)
{
	const char *p = data;

	while (length) {
		ssize_t n = send(s, p, length, MSG_NOSIGNAL);

		if (n <= 0)
			die("send");
		p += n;
		length -= (size_t)n;
	}
}

static void get(int s, void *data, size_t length)
{
	char *p = data;

	while (length) {
		ssize_t n = recv(s, p, length, 0);

		if (!n)
			errno = ECONNRESET;
		if (n <= 0)
			die("receive");
		p += n;
		length -= (size_t)n;
	}
}

static uint32_t get_message(int s)
{
	uint32_t length;

	get(s, &length, sizeof(length));
	if (length > LENGTH) {
		fprintf(stderr, "smc: a message of %u bytes\n", length);
		exit(1);
	}
	get(s, got, length);
	return length;
}

static void put_message(int s, const void *data, uint32_t length)
{
	put(s, &length, sizeof(length));
	put(s, data, length);
}

static void serve(const struct sockaddr_in *own, unsigned int connections, unsigned int messages)
{
	int listener = socket(AF_SMC, SOCK_STREAM, SMC_OVER_IPV4), yes = 1;
	struct pollfd s[MAX_CONNECTIONS];

	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(listener, (const struct sockaddr *)own, sizeof(*own)) ||
	    listen(listener, MAX_CONNECTIONS))
		die("listen");
	printf("listening\n");
	fflush(stdout);
	for (unsigned int c = 0; c < connections; c++) {
		s[c] = (struct pollfd){ .fd = accept(listener, NULL, NULL), .events = POLLIN };
		if (s[c].fd < 0)
			die("accept");
	}
	/* SMC may accept connections in another order than the client made them. */
	for (unsigned int n = 0; n < connections * messages;) {
		if (poll(s, connections, -1) < 0)
			die("poll");
		for (unsigned int c = 0; c < connections; c++) {
			if (!s[c].revents)
				continue;
			put_message(s[c].fd, got, get_message(s[c].fd));
			n++;
		}
	}
	for (unsigned int c = 0; c < connections; c++)
		close(s[c].fd);
	close(listener);
}

static void compare(int s, unsigned int i, uint32_t length, uint32_t *random)
{
	for (uint32_t k = 0; k < length; k++) {
		*random = *random * 1664525 + 1013904223;
		sent[k] = (uint8_t)(*random >> 24);
	}
	put_message(s, sent, length);
	if (get_message(s) != length || memcmp(sent, got, length)) {
		fprintf(stderr, "smc: message %u, %u bytes: another one came back\n", i, length);
		exit(1);
	}
}

static void ask(const struct sockaddr_in *server, unsigned int connections, unsigned int messages)
{
	static const uint32_t lengths[] = { 0, 1, 64, 1000, 4097, 65536, 200001, LENGTH };
	struct timeval patience = { .tv_sec = 300 };
	uint32_t random = 11;
	int s[MAX_CONNECTIONS];

	for (unsigned int c = 0; c < connections; c++) {
		s[c] = socket(AF_SMC, SOCK_STREAM, SMC_OVER_IPV4);
		if (s[c] < 0 ||
		    setsockopt(s[c], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
		    connect(s[c], (const struct sockaddr *)server, sizeof(*server)))
			die("connect");
	}
	printf("connected\n");
	fflush(stdout);
	getchar();
	for (unsigned int i = 0; i < messages; i++)
		for (unsigned int c = 0; c < connections; c++)
			compare(s[c], i, lengths[(i * 5 + c) % 8], &random);
	for (unsigned int c = 0; c < connections; c++)
		close(s[c]);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	unsigned int connections, messages;

	if (argc == 3 && !strcmp(argv[1], "eid")) {
		add_eid(argv[2]);
		return 0;
	}
	if (argc != 5 || (strcmp(argv[1], "server") && strcmp(argv[1], "client")) ||
	    inet_pton(AF_INET, argv[2], &a.sin_addr) != 1 ||
	    (connections = (unsigned int)strtoul(argv[3], NULL, 0)) - 1 >= MAX_CONNECTIONS) {
		fprintf(stderr,
			"usage: smc eid NAME | server ADDRESS CONNECTIONS MESSAGES | client SERVER "
			"CONNECTIONS MESSAGES, with at most 16 connections\n");
		return 2;
	}
	messages = (unsigned int)strtoul(argv[4], NULL, 0);
	if (argv[1][0] == 's')
		serve(&a, connections, messages);
	else
		ask(&a, connections, messages);
	return 0;
}
