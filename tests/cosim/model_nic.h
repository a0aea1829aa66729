/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small NIC in C for tests of the scheduler and of the embedded host: it has the pins of
 * urdma_top and none of its function. BAR0 words: 0x00 cycle counter (read only)   0x08.. plain
 * registers 0x40 bus address to send from    0x48 length; writing it reads the memory and sends it
 * as a frame 0x50 bus address frames are written to   0x58 frames received (read only) 0x60 arms a
 * timer: interrupt 1 after that many cycles A received frame is written to memory, then interrupt 0
 * is raised.
 */
#ifndef MODEL_NIC_H
#define MODEL_NIC_H

#include "scheduler.h"

extern const struct urdma_model_ops model_nic;

/* Makes all NICs created from now on misbehave. */
enum model_nic_fault {
	MODEL_NIC_GOOD,
	MODEL_NIC_DEAF,	       /* takes no register access */
	MODEL_NIC_GAP,	       /* lets tvalid fall inside a frame */
	MODEL_NIC_BAD_TLP,     /* reads with an illegal byte enable */
	MODEL_NIC_STALE_TIMER, /* no fault: reports its timer through registers, two clocks late */
};
void model_nic_set_fault(enum model_nic_fault fault);

#endif
