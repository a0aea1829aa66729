// SPDX-License-Identifier: Apache-2.0
/*
 * rds server ADDRESS MESSAGES: sends back this many messages of RDS, and waits for one more.
 *
 * rds client OWN SERVER MESSAGES: sends messages of many lengths to a server and compares the
 * answers; at the end it sends the message that the server waits for. With one message it waits 20
 * s for the answer, otherwise 200 s.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define PORT   18700
#define LENGTH 65536

static uint8_t sent[LENGTH], got[LENGTH + 1];

static void die(const char *what)
{
	fprintf(stderr, "rds: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1) {
		fprintf(stderr, "rds: %s is no IPv4 address\n", text);
		exit(2);
	}
	return a;
}

static size_t receive(int s, struct sockaddr_in *from)
{
	socklen_t size = sizeof(*from);
	ssize_t n = recvfrom(s, got, sizeof(got), 0, (struct sockaddr *)from, &size);

	if (n < 0)
		die("receive");
	return (size_t)n;
}

static void send_to(int s, const void *data, size_t length, const struct sockaddr_in *to)
{
	if (sendto(s, data, length, 0, (const struct sockaddr *)to, sizeof(*to)) != (ssize_t)length)
		die("send");
}

static void serve(int s, unsigned int messages)
{
	struct sockaddr_in from;

	printf("listening\n");
	fflush(stdout);
	while (messages--)
		send_to(s, got, receive(s, &from), &from);
	/* The last answer has to be acknowledged before the socket is closed. */
	receive(s, &from);
}

static void ask(int s, const struct sockaddr_in *server, unsigned int messages)
{
	static const size_t lengths[] = { 1, 64, 1000, 4096, 4097, 20000, LENGTH };
	struct timeval patience = { .tv_sec = messages == 1 ? 20 : 200 };
	struct sockaddr_in from;
	uint32_t random = 9;

	if (setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		die("time-out");
	for (unsigned int i = 0; i < messages; i++) {
		size_t length = lengths[i * 5 % 7];

		for (size_t k = 0; k < length; k++) {
			random = random * 1664525 + 1013904223;
			sent[k] = (uint8_t)(random >> 24);
		}
		send_to(s, sent, length, server);
		if (receive(s, &from) != length || memcmp(sent, got, length)) {
			fprintf(stderr, "rds: message %u, %zu bytes: another one came back\n", i,
				length);
			exit(1);
		}
	}
	send_to(s, "end", 3, server);
}

int main(int argc, char **argv)
{
	int server = argc == 4 && !strcmp(argv[1], "server");
	struct sockaddr_in own, to;
	unsigned int messages;
	int s;

	if (!server && (argc != 5 || strcmp(argv[1], "client"))) {
		fprintf(stderr,
			"usage: rds server ADDRESS MESSAGES | client OWN SERVER MESSAGES\n");
		return 2;
	}
	own = address(argv[2]);
	messages = (unsigned int)strtoul(argv[argc - 1], NULL, 0);
	s = socket(AF_RDS, SOCK_SEQPACKET, 0);
	if (s < 0 || bind(s, (struct sockaddr *)&own, sizeof(own)))
		die("socket");
	if (server) {
		serve(s, messages);
	} else {
		to = address(argv[3]);
		ask(s, &to, messages);
	}
	return 0;
}
