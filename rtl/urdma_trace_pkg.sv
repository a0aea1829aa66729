// SPDX-License-Identifier: Apache-2.0
// Lanes: the events that the NIC reports to a listener. docs/tracing.md has the rules and the purpose of each lane.
//
// A lane reports at most one event per cycle, in the cycle of its valid. A block raises an event when its contents are
// decided. Lanes have no state of their own, so synthesis without a listener removes them. cosim/trace/lanes.def lists lanes
// and fields once more, for the simulator; its compiler checks that the two lists agree.
/* verilator lint_off UNUSEDPARAM */
package urdma_trace_pkg;
  import urdma_pkg::*;

  localparam int TRACE_W = 96;      // bits of a lane; narrower types are padded with zeros at the top

  // ---- doorbells that have passed their checks ------------------------------------------------------------------
  // SQ, RQ: urdma_doorbell hands it on. CQ: urdma_cq takes it.
  localparam int TRACE_SQ_DB = 0;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      pi;           // producer index
  } tr_sq_db_t;

  localparam int TRACE_RQ_DB = 1;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      pi;
  } tr_rq_db_t;

  localparam int TRACE_CQ_DB = 2;
  typedef struct packed {
    logic [CQN_W-1:0] cqn;
    logic [31:0]      ci;           // software has seen all CQEs before it
    logic             arm;          // it asks for an event
  } tr_cq_db_t;

  // ---- requester: send queue to wire --------------------------------------------------------------------------
  // The scheduler gives a QP its turn and fetches WQEs.
  localparam int TRACE_TURN = 3;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      wqe;          // index of the first WQE
    logic [4:0]       n;            // WQEs
    logic             again;        // a retransmission begins
  } tr_turn_t;

  // The head of a WQE is on chip, and it is the next WQE of its QP. With held it must wait for credit, a fence, PSNs, or its
  // local operation; its head is then read again later. Without held its first packet is made, or the WQE ends without one:
  // once for each WQE, but again if a retransmission comes before its last packet was made.
  localparam int TRACE_WQE = 4;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      wqe;
    logic [23:0]      psn;
    logic [7:0]       op;           // URDMA_OP_*
    logic [31:0]      len;          // bytes of the message
    logic             held;
  } tr_wqe_t;

  // A packet of a WQE, a READ response or an ATOMIC acknowledge is made; its payload, if any, will be read.
  localparam int TRACE_PKT = 5;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      wqe;          // without resp
    logic [23:0]      psn;
    logic [7:0]       opcode;       // of the BTH, as RC has it
    logic [12:0]      len;          // bytes of payload; 0 for an ATOMIC WRITE
    logic             resp;         // the responder sends it
    logic             again;        // it was sent before; resp: its READ is repeated, and short
    logic             last;         // of its message
  } tr_pkt_t;

  // The payload of such a packet has arrived; the packet goes to header assembly or is dropped. Once for each tr_pkt_t, in
  // the same order.
  localparam int TRACE_FULL = 6;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    logic [7:0]       opcode;
    logic             drop;         // no frame follows. Without drop a frame follows if the source GID is valid
  } tr_full_t;

  // An ACK or NAK goes to header assembly.
  localparam int TRACE_ANS = 7;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    logic [7:0]       syndrome;     // of the AETH
  } tr_ans_t;

  // First beat of an RDMA frame under way to the MAC or, if it is for this NIC, back to the receiver.
  localparam int TRACE_OUT = 8;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;          // its sender
    logic [23:0]      dqpn;         // from the BTH, like the fields below
    logic [23:0]      psn;
    logic [7:0]       opcode;
  } tr_out_t;

  // Requester completion reports progress to the sender, or requests a retransmission.
  localparam int TRACE_ACKED = 9;
  typedef enum logic [2:0] {
    TRC_PROGRESS,                   // acknowledged, or completed without an acknowledgement (UC, UD)
    TRC_NAK,                        // resend: NAK for a gap
    TRC_IMPLIED,                    // an answer skipped an earlier READ
    TRC_TIMEOUT,
    TRC_RNR_WAIT,                   // RNR NAK: send nothing for now
    TRC_RNR                         // the wait is over: resend
  } trace_cause_e;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      wqe;          // all WQEs before it are completed
    logic [23:0]      psn;          // oldest that is not acknowledged, in the message of wqe
    trace_cause_e     cause;
  } tr_acked_t;

  // ---- receiver -----------------------------------------------------------------------------------------------
  // The parser has checked an RDMA packet, and stores it, or drops it for lack of room.
  localparam int TRACE_IN = 10;
  typedef struct packed {
    logic [23:0]      qpn;          // destination
    logic [23:0]      psn;
    logic [7:0]       opcode;
    logic             full;         // dropped
  } tr_in_t;

  // The responder has decided on a request; for a datagram to a group, once for each member. Placement may still refuse an
  // accepted request because of its key. qpn: the low bits of the destination.
  localparam int TRACE_RSP = 11;
  typedef enum logic [2:0] {
    TRV_TAKEN,
    TRV_REPEATED,                   // a duplicate
    TRV_GAP,                        // out of sequence
    TRV_RNR,                        // no receive WQE
    TRV_REFUSED,                    // it moves the QP to ERR, or ends its message (UC, UD)
    TRV_DROPPED                     // no such QP, wrong state, after an error
  } trace_verdict_e;
  // Why a packet has no effect; TRW_NONE if it has one, or if the verdict gives the reason.
  typedef enum logic [3:0] {
    TRW_NONE,
    TRW_NO_QP,                      // no such QP
    TRW_TRANSPORT,                  // the opcode is of a transport other than the QP's
    TRW_STATE,                      // the QP takes no such packets in its state
    TRW_ADDRESS,                    // not from the QP's peer, or not to the QP's GID entry
    TRW_PKEY,
    TRW_QKEY,
    TRW_ERROR,                      // the QP has failed, or its SRQ is missing
    TRW_OLD,                        // a repeated READ or ATOMIC that must not be answered again
    TRW_GHOST,                      // an answer to a PSN that is acknowledged already, or was not sent
    TRW_LOST                        // an answer after a lost READ response
  } trace_why_e;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    logic [7:0]       opcode;
    trace_verdict_e   verdict;
    trace_why_e       why;
    logic             more;         // for the same datagram there is another one for the next member
  } tr_rsp_t;

  // Requester completion has decided on a response or acknowledgement. qpn as in tr_rsp_t.
  localparam int TRACE_REQ = 12;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    logic [7:0]       syndrome;     // of the AETH, 0 without
    logic             drop;         // it has no effect
    trace_why_e       why;
  } tr_req_t;

  // The last DMA write of a request or response is accepted by the PCIe side; without payload, its turn has come: a READ goes
  // to tx, an ATOMIC to its unit, repeated ones too. Not for packets that have no effect or are refused now.
  localparam int TRACE_PUT = 13;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    logic             resp;         // a READ response or ATOMIC acknowledge
  } tr_put_t;

  // ---- completions, events, commands -----------------------------------------------------------------------------
  // The DMA write of a CQE is accepted by the PCIe side.
  localparam int TRACE_CQE = 14;
  typedef struct packed {
    logic [CQN_W-1:0] cqn;
    logic [QPN_W-1:0] qpn;
    logic [15:0]      wqe;          // index of the WQE
    logic             send;         // of the send queue
    logic [7:0]       status;       // URDMA_WC_*
  } tr_cqe_t;

  // The same for an EQE.
  localparam int TRACE_EQE = 15;
  typedef struct packed {
    logic [EQN_W-1:0] eqn;
    logic [7:0]       kind;         // URDMA_EV_*
    logic [23:0]      obj;
  } tr_eqe_t;

  // A command has taken effect: its completion goes to PCIe.
  localparam int TRACE_CMD = 16;
  typedef struct packed {
    logic [15:0]      tag;
    logic [7:0]       status;       // URDMA_CS_*
  } tr_cmd_t;

  // ---- translation ------------------------------------------------------------------------------------------------
  // An access of a client to a page is answered: checked against its key, and its address found. An access across a page end
  // has one event for each page.
  localparam int TRACE_XLAT = 17;
  typedef struct packed {
    logic [2:0]       client;       // MRC_*
    logic [31:0]      key;          // of a region or window; 0 for a ring
    logic             dir_hit;      // the entry of a directory was on chip
    logic             dir_miss;     // it was not: the access has waited for it
    logic             pte_hit;      // the same for the page table entry
    logic             pte_miss;
    logic             refused;      // also if directory or page table could not be read
  } tr_xlat_t;

  // ---- frames that the NIC drops ------------------------------------------------------------------------------------
  // The parser drops a frame: it goes neither to RDMA nor to the Ethernet function.
  localparam int TRACE_BAD = 18;
  typedef enum logic [1:0] {
    TRB_MAC,                        // the MAC marked it bad
    TRB_MALFORMED,
    TRB_ICRC,
    TRB_BACK                        // a datagram to a group that the network has sent back, or that has no member here
  } trace_bad_e;
  typedef struct packed {
    trace_bad_e       why;
    logic [23:0]      qpn;          // fields of the BTH; TRB_MAC: if it is a packet
    logic [23:0]      psn;
    logic [7:0]       opcode;
  } tr_bad_t;

  // The Ethernet function has checked a frame that is not RDMA's, and stores it or drops it.
  localparam int TRACE_ETH_IN = 19;
  typedef enum logic [1:0] {
    TRE_TAKEN,
    TRE_FILTERED,                   // all filters refuse it, or frames are not received
    TRE_LENGTH,
    TRE_FULL
  } trace_eth_e;
  typedef struct packed {
    logic [14:0]      len;          // bytes on the wire, without FCS; too low for more than 255 beats
    trace_eth_e       verdict;
  } tr_eth_in_t;

  // A stored frame gets its buffers, or is dropped because there are none. In the order of tr_eth_in_t.
  localparam int TRACE_ETH_BUF = 20;
  typedef struct packed {
    logic [14:0]      len;
    logic             drop;
  } tr_eth_buf_t;

  // A request that the responder has accepted, or a repeated READ or ATOMIC, ends at placement without effect. Each such
  // request has this or a tr_put_t; this may come some cycles after the tr_put_t of the next request.
  localparam int TRACE_VOIDED = 21;
  typedef enum logic [1:0] {
    TRO_DEAD,                       // after an error of its QP, or of an earlier life
    TRO_REFUSED,                    // a key, a WQE or its SGEs are refused
    TRO_UNREL                       // UC: a key is refused, of this packet or of an earlier one of the message
  } trace_voided_e;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    trace_voided_e    why;
  } tr_voided_t;

  // A READ, or the result of an ATOMIC or FLUSH, has arrived at tx, which answers it when its turn comes, or drops it.
  localparam int TRACE_ASK = 22;
  typedef enum logic [1:0] {
    TRA_TAKEN,
    TRA_FULL,                       // too many wait, or it comes after one that was dropped for this reason
    TRA_ENDED                       // the QP has failed
  } trace_ask_e;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    trace_ask_e       verdict;
  } tr_ask_t;

  // An ATOMIC or FLUSH with a tr_put_t leaves its unit without a result for tx. Each has this or a tr_ask_t.
  localparam int TRACE_MUTE = 23;
  typedef enum logic [1:0] {
    TRM_ENDED,                      // the QP has failed, or has begun a new life
    TRM_NAK,                        // its read of host memory failed; the QP fails
    TRM_OLD                         // repeated, and its result is not kept any more
  } trace_mute_e;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
    trace_mute_e      why;
  } tr_mute_t;

  // Requester completion notices a loss and counts a retry of the QP. A tr_acked_t with this cause follows; if the QP notices
  // another loss before it can resend, one tr_acked_t with that cause follows for both.
  localparam int TRACE_LOSS = 24;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;          // oldest PSN that is not acknowledged
    trace_cause_e     cause;        // TRC_NAK, TRC_IMPLIED, TRC_TIMEOUT
    logic             out;          // no retry is left: the QP fails
  } tr_loss_t;

  // A QP's life is over: it is destroyed or reset, and no work of that life is under way any more. The command's completion
  // follows.
  localparam int TRACE_QP_END = 25;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic             reset;        // reset, not destroyed
  } tr_qp_end_t;

  localparam int TRACE_N = 26;

  typedef logic [TRACE_W-1:0] trace_lane_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
