/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External ports: wires whose other end is outside this process.
 *
 *   stream:unix:PATH[,listen]   QEMU's -netdev stream: each frame after its 32-bit length
 *
 *   stream:tcp:PORT[,listen]    the same over TCP, at 127.0.0.1
 *
 *   dgram:unix:PATH[,peer=PATH] QEMU's -netdev dgram: one frame per datagram
 *
 *   dgram:udp:PORT[,peer=PORT]  the same over UDP, at 127.0.0.1
 *
 *   tap:IFNAME                  a tap device of Linux
 *
 *   replay:FILE[,fast][,at=NS][,hold][,only=in|only=out]
 *                               sends a pcapng file, with its frame spacing or at line rate
 *
 * All kinds but the replay are asynchronous, as guests are. Between runs urdma_external_process()
 * takes frames that have arrived from the peer. They enter the simulation at that time, through the
 * rate and the delay of the wire. A frame leaves to the peer when its last bit has arrived. Nothing
 * here ever blocks: if the peer is slow, a bounded number of bytes waits, and the port drops and
 * counts further frames. A peer that dies or sends nonsense takes only its port down; a listening
 * port then waits for the next peer.
 */
#ifndef URDMA_COSIM_EXTERNAL_H
#define URDMA_COSIM_EXTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eth/wire.h"

#define URDMA_EXTERNAL_MAX_POLLFDS 1u
#define URDMA_EXTERNAL_MIN_FRAME   14u /* a shorter one has no Ethernet header */

struct urdma_external_stats {
	/* The port counts frames and bytes of both directions. */
	uint64_t no_peer;   /* frames to send while there was no peer */
	uint64_t peer_full; /* frames for a peer that accepted none for too long */
	uint64_t bad_fcs;   /* frames for the peer with a bad FCS: a MAC drops them */
	uint64_t bad_length;
	uint64_t connects, disconnects;
	uint64_t skipped; /* packets of a capture that are not sent: cut short, not Ethernet */
	bool up;	  /* there is a peer, as far as the port can detect */
};

struct pollfd;
struct urdma_external;

/* True for a name of letters, digits, '_' and '.' that no NIC or switch has. */
bool urdma_external_name_ok(const char *name, size_t len);
/* text: NAME=KIND:..., see above. -EINVAL: error has the reason. */
int urdma_external_parse(const char *text, struct urdma_external **ext, char *error, size_t size);
/* Opens sockets and files. Returns -errno with a message in error. */
int urdma_external_open(struct urdma_external *ext, uint64_t rate_mbps, char *error, size_t size);
/* Its wire must be destroyed before. NULL is allowed. */
void urdma_external_destroy(struct urdma_external *ext);

const char *urdma_external_name(const struct urdma_external *ext);
const char *urdma_external_kind(const struct urdma_external *ext);
struct urdma_eth_port *urdma_external_port(struct urdma_external *ext);
const struct urdma_external_stats *urdma_external_stats(const struct urdma_external *ext);

/*
 * Call between runs, in cycle now. Receives and sends as much as possible. True if anything moved.
 */
bool urdma_external_process(struct urdma_external *ext, uint64_t now);
/* Descriptors to poll; at most URDMA_EXTERNAL_MAX_POLLFDS. */
unsigned int urdma_external_pollfds(const struct urdma_external *ext, struct pollfd *fds);
/*
 * True if frames wait that poll does not report: for a peer with a full buffer, or from a peer that
 * sent many. Call urdma_external_process() again within a millisecond.
 */
bool urdma_external_waiting(const struct urdma_external *ext);

/* The same as for a port, for the scheduler. */
bool urdma_external_advance(struct urdma_external *ext, uint64_t now);
/* Next cycle in which it sends a frame by itself, like an armed timer. UINT64_MAX: never. */
uint64_t urdma_external_due(const struct urdma_external *ext);
/* The file that a replay sends; NULL: the port is not a replay. */
const char *urdma_external_file(const struct urdma_external *ext);
/* Starts a replay that was held. -EINVAL: the port is not a held replay; -EALREADY. */
int urdma_external_start(struct urdma_external *ext, uint64_t now);

#endif
