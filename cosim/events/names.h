/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the numbers in events, in RDMA terms. Unknown numbers: "?". */
#ifndef URDMA_EVENTS_NAMES_H
#define URDMA_EVENTS_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define URDMA_CAUSES   6u /* trace_cause_e */
#define URDMA_VERDICTS 6u /* trace_verdict_e */
#define URDMA_CLIENTS  5u /* MRC_* */

const char *urdma_name_op(uint64_t op);		  /* URDMA_WR_* */
const char *urdma_name_status(uint64_t status);	  /* URDMA_WC_* */
const char *urdma_name_opcode(uint64_t opcode);	  /* of a BTH */
const char *urdma_name_cause(uint64_t cause);	  /* TRC_*: cause of a retransmission */
const char *urdma_name_verdict(uint64_t verdict); /* TRV_* */
const char *urdma_name_stream(uint64_t stream);	  /* enum urdma_trace_stream */
const char *urdma_name_client(uint64_t client);	  /* MRC_* */

/*
 * True if a WQE with this URDMA_WR_* sends packets; others change regions and windows of the NIC.
 */
bool urdma_op_sends(uint64_t op);
/* True if packets are sent again after an acked event with this cause. */
bool urdma_cause_resends(uint64_t cause);
/* True if the BTH opcode is a response or acknowledgement. */
bool urdma_opcode_answers(uint64_t opcode);
/* True if it belongs to UC or UD, which are not acknowledged. */
bool urdma_opcode_unreliable(uint64_t opcode);

#endif
