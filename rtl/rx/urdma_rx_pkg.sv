// SPDX-License-Identifier: Apache-2.0
// Types that pass between the stages of rtl/rx.
/* verilator lint_off UNUSEDPARAM */
package urdma_rx_pkg;
  import urdma_pkg::*;
  import urdma_opcode_pkg::*;

  localparam int BUF_W = 11;       // log2 of 64-byte lines of the packet buffer (2048: 128 KB)
  // Packets that wait for the look-up, for requests and acknowledgements each. There are as many places as the buffer has
  // lines, so small packets find as much room as long ones. The wire delivers a READ request in 2 cycles and the responder
  // takes one in 3 cycles: a queue of 2048 absorbs a burst of 6000 READs, that is 16 from each of 375 QPs.
  localparam int PKT_QUEUE = 1 << BUF_W;
  // Places of the queue and lines of the buffer that requests leave free for packets that end work. Under overload a request
  // is dropped before a READ response is, so the answers that requests wait for still arrive.
  localparam int RSP_PLACES = 256;
  localparam int RSP_LINES = 256;
  localparam int PIECES = 256;     // pieces between walk and placement
  localparam int PIECE_W = 10;     // piece numbers; compared by their distance, below 2 * PIECES
  // SENDs with invalidate between the walk and the last piece given to translation before their invalidation. At this limit
  // the walk waits before the next such SEND.
  localparam int INV_W = 5;
  localparam int INV_N = 1 << INV_W;
  localparam int INV_GONE = 32;    // invalid keys through which ATOMICs or reads of tx may still be under way
  localparam int CQE_QUEUE = 64;   // CQEs of the responder, including those queued after the CQE of such a key
  localparam int EXT_BYTES = 28;   // longest extended header: AtomicETH

  // AETH syndromes (IBA volume 1, 9.7.5.2.1): bits 6:5 give the kind
  localparam logic [7:0] SYN_ACK = 8'h1f;        // no credit count
  localparam logic [7:0] SYN_RNR = 8'h20;        // or'ed with the timer code
  localparam logic [7:0] SYN_NAK_SEQ = 8'h60;
  localparam logic [7:0] SYN_NAK_INV = 8'h61;
  localparam logic [7:0] SYN_NAK_ACCESS = 8'h62;
  localparam logic [7:0] SYN_NAK_OP = 8'h63;

  localparam int MCG_W = 6;        // log2 of multicast groups
  localparam int MCM_W = 8;        // log2 of their members, together
  localparam int GRH_BYTES = 40;   // in front of the payload of a UD datagram (IBA volume 1, 11.4.1.2; annex A17)

  // A packet that passed its ICRC. Addresses have byte 0 of the wire in [7:0], IPv4 as ::ffff:a.b.c.d.
  // The value of an ATOMIC acknowledge is in the packet buffer as well: len 0, but one line. The GRH of a UD datagram is
  // there in front of the payload, and len includes it.
  typedef struct packed {
    logic [47:0]      dmac;
    logic             vlan_valid;
    logic [15:0]      tci;         // of the tag; its VLAN in bits 11:0
    logic             ipv4;
    logic [127:0]     sip;
    logic [127:0]     dip;
    logic [7:0]       opcode;      // for the lanes
    bth_t             bth;         // decoded opcode
    logic             se;
    logic             ackreq;
    logic [15:0]      pkey;
    logic [23:0]      dqpn;
    logic [23:0]      psn;
    logic [23:0]      srqn;        // of the XRCETH; only if bth.xrceth
    logic [8*EXT_BYTES-1:0] ext;   // the other extended headers as they lie on the wire, first byte in [7:0]; FLUSH: RETH, FETH
    logic [12:0]      len;         // payload bytes without pad, 0..4096; UD: 40..4136
    logic [BUF_W-1:0] line;        // where the payload begins in the packet buffer
    logic [6:0]       lines;       // ceil(len / 64), 65 at most; ATOMIC acknowledge: 1, its value lies there too
    logic             mc;          // UD, to a group of this NIC: a copy for each member. In a copy: another copy follows
    logic [MCG_W-1:0] mc_idx;
    logic [MCM_W:0]   mc_copies;   // in the packet as received; 0: the destination QPN is not the multicast QPN
  } pkt_t;

  // Parser to urdma_rx_mcast: is the destination a group of this NIC?
  typedef struct packed {
    logic             ipv4;
    logic [47:0]      dmac;
    logic [127:0]     dip;
  } mc_look_t;

  // What a datagram to a group occupies: as if each member had been sent one.
  typedef struct packed {
    logic [MCM_W:0]   copies;
    logic [6:0]       lines;
  } mc_cost_t;

  // Items that ask for a QP's configuration. Only IT_PKT uses all of pkt; the others use dqpn; IT_DB has the producer index
  // in ext[15:0].
  typedef enum logic [1:0] {
    IT_PKT,
    IT_DB,         // receive queue doorbell
    IT_KICK,       // look at the QP again: flush its receive queue, walk its table of sent messages
    IT_FENCE
  } item_e;

  typedef struct packed {
    item_e kind;
    pkt_t  pkt;
  } item_t;

  // The same after the look-up.
  typedef struct packed {
    item_e            kind;
    logic             pass;        // IT_PKT: the packet belongs to the QP; else: the QP exists
    logic [3:0]       why;         // without pass, for the lanes: trace_why_e
    logic             more;        // for the lanes: a copy of the same datagram follows
    logic             bad_qkey;    // with pass: UD, the Q_Key is not the QP's
    logic             unrel;       // the QP is of UC or UD
    logic             srq;         // its receive WQEs come from SRQ srqn
    logic [SRQN_W-1:0] srqn;
    logic             xrc;         // with srq: a target QP of XRC. srqn: of the packet; IT_KICK: of the message in progress
    logic             no_srqn;     // with xrc: the packet names no SRQ, or one beyond 2**SRQN_W
    logic [QPN_W-1:0] qpn;
    logic [7:0]       opcode;      // for the lanes
    bth_t             bth;
    logic             ipv4;
    logic             vlan_valid;
    logic [15:0]      tci;
    logic             se;
    logic             ackreq;
    logic [23:0]      psn;
    logic [8*EXT_BYTES-1:0] ext;
    logic [12:0]      len;
    logic [BUF_W-1:0] line;
    logic [6:0]       lines;
    // from the configuration
    logic [3:0]       state;
    logic [3:0]       acc;         // remote write, read, atomic; FLUSH
    logic [7:0]       max_dest_rd_atomic;
    logic [4:0]       timeout;
    logic [2:0]       retry;
    logic [2:0]       rnr_retry;
    logic [CQN_W-1:0] cqn;         // the receive CQ, or the send CQ
    logic [23:0]      dest_qpn;    // UD: the source QPN of the DETH
    logic [PD_W-1:0]  pd;
    logic [2:0]       mtu;
    logic [4:0]       min_rnr;
    ring_t            rq;          // of a READ response or ATOMIC acknowledge: the send queue's
  } found_t;

  // Why the responder drops a packet of UC or UD.
  typedef enum logic [2:0] {
    DW_NONE,
    DW_SEQ,        // UC: a packet before it is lost. RX_SEQ_ERR
    DW_BAD,        // opcode, length, right. RX_DROP_UNREL
    DW_NO_WQE,     // RX_DROP_NO_WQE
    DW_QKEY        // RX_BAD_QKEY
  } drop_why_e;

  // State that the responder keeps for a QP. Owner: urdma_rx_resp
  typedef struct packed {
    logic        active;           // from RTR on
    logic        err;
    logic        nak;              // a NAK or RNR NAK for epsn has been sent: packets after it are dropped silently
    logic        in_msg;
    logic        write;            // with in_msg: of a WRITE, so no WQE is in use
    drop_why_e   skip;             // UC: the message in progress is dropped until its end
    logic        est;              // COMM_EST has been reported, or must not be reported any more
    logic        queued;           // is in the flush queue
    logic        held;             // has taken a WQE of its SRQ that is not completed: the next message of UC may use it
    logic        flushed;          // with an SRQ: OK_FLUSH has been sent
    logic [1:0]  gen;
    logic [23:0] epsn;
    logic [23:0] msn;
    logic [15:0] ci;               // next WQE to use, or the one in use
    logic [15:0] pi;
    logic [31:0] moff;             // bytes of the message received
    logic [31:0] left;             // WRITE: bytes to come, where, with which key
    logic [63:0] va;
    logic [31:0] key;
  } resp_st_t;

  // Placement to responder: look at a QP again.
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic             back;        // UC: WQE wqe was not used, go back to it; only if the life is still gen
    logic [1:0]       gen;
    logic [15:0]      wqe;
  } kick_t;

  // Responder to placement, in order. Each operation takes effect after all earlier ones.
  typedef enum logic [2:0] {
    OK_NONE,       // free the buffer lines, send an acknowledgement, report an error: as the flags say
    OK_DATA,       // payload of a SEND to the receive WQE, then the acknowledgement and the CQE
    OK_WRITE,      // payload of a WRITE to where its RETH says, then the same
    OK_READ,       // READ request: if its range is allowed, to tx, which makes the answer
    OK_ATOMIC,     // ATOMIC, FLUSH: to the ATOMIC unit
    OK_RSP,        // READ response, ATOMIC acknowledge: payload to the send WQE that rr_t names, then rdone_t
    OK_FLUSH,      // receive WQEs up to wqe (exclusive) complete with FLUSH_ERR; with an SRQ: the one in use
    OK_FENCE
  } op_e;

  typedef struct packed {
    op_e              kind;
    logic [QPN_W-1:0] qpn;
    logic [1:0]       gen;         // life of the QP: an operation of an earlier one has no effect
    logic             unrel;       // of UC, UD: never acknowledged
    logic             srq;         // its WQE is of an SRQ; wqe: after urdma_rx_srq_idx its place in the array
    logic             srq_new;     // it is the first to use this WQE; before urdma_rx_srq_idx, wqe is the index in the ring
    logic             srq_bad;     // after urdma_rx_srq_idx: the WQE could not be found; OK_NONE
    logic             xrc;         // its SRQ is an XRC SRQ, with number dest_qpn
    logic [12:0]      len;         // OK_RSP of an ATOMIC: 8
    logic [BUF_W-1:0] line;
    logic [6:0]       lines;
    logic             pass;        // OK_RSP: the packet belongs to the QP; if not, nothing is placed
    logic             take;        // OK_RSP, after the WQE fetch: rr_t.take
    logic             first;       // OK_DATA, OK_WRITE: begins its message
    logic             last;        // OK_DATA, OK_WRITE: ends its message; OK_RSP, after the WQE fetch: rr_t.last
    logic             swap;        // OK_RSP of an ATOMIC: value in the order of the wire
    logic             dup;           // OK_ATOMIC, OK_READ: repeated
    logic             fetch_add;   // OK_ATOMIC
    logic             mpe;         // OK_ATOMIC: FLUSH; OK_WRITE: ATOMIC WRITE. Answered by a READ response of 0 bytes
    logic             check;       // OK_WRITE: only its key is checked, nothing is written; no WQE is posted for its immediate
    logic             ack;         // send an acknowledgement
    logic [23:0]      psn;         // its PSN; with data: of the packet
    logic [7:0]       syndrome;
    logic [23:0]      msn;         // OK_DATA, OK_WRITE: as before the packet; else of the answer
    logic             est;         // report COMM_EST; OK_FLUSH: LAST_WQE
    logic             err;         // report to qp_mgr with ev
    logic [7:0]       ev;
    logic             cqe;         // OK_DATA, OK_WRITE: the message ends and has a WQE; OK_NONE: WQE completes with status
    logic [7:0]       status;
    logic             imm_valid;
    logic             inv;         // invalidate key imm
    logic             se;
    logic [31:0]      imm;
    logic [31:0]      mlen;        // bytes of the message up to the end of this packet
    logic [15:0]      wqe;
    logic [CQN_W-1:0] cqn;
    logic [PD_W-1:0]  pd;          // of the keys that the request names; SRQ: the keys in its WQEs are of fetch_t.pd
    logic [23:0]      dest_qpn;    // for the CQE; XRC: number of the SRQ
    logic             grh;         // UD; with it, of the frame:
    logic             ipv4;
    logic             vlan_valid;
    logic [15:0]      tci;
    logic [127:0]     arg;         // OK_READ, with mpe: va, key, length; OK_ATOMIC: swap_add, compare
  } op_t;

  // Inputs of the WQE fetch in addition to the operation.
  typedef struct packed {
    logic [31:0]      moff;        // offset of the packet in the message
    logic [PD_W-1:0]  pd;
    ring_t            rq;
    logic [31:0]      key;         // OK_WRITE, OK_READ, OK_ATOMIC
    logic [63:0]      va;
    logic             whole;       // FLUSH of all that the key opens
  } fetch_t;

  // Where urdma_rx_srq_idx finds the WQE of an operation with srq_new.
  typedef struct packed {
    logic [SRQN_W-1:0] srqn;
    logic              fresh;      // as in srq_got_t
    logic [15:0]       left;
  } find_t;

  // First half of placement to its second half, urdma_rx_finish.
  typedef struct packed {
    op_t  op;                      // its flags say what to do
    logic live;
    logic lost;                    // no effect because its QP has ended, but it is the first to use its WQE of an SRQ
    logic rdone;                   // report to requester completion, with op.status
    logic gone;                    // it has made its key invalid: its CQE waits in urdma_rx_cqe_wait
    logic back;                    // its WQE is not used
  } rec_t;

  // Walker to placement: for each piece of a packet sent to translation, and once if the walk failed.
  typedef struct packed {
    logic       piece;             // fragments follow from translation
    logic       last;              // last record of the packet
    logic [7:0] status;            // with last: URDMA_WC_*
    logic [31:0] key;              // with piece: by which it is checked
    logic [INV_W:0] invs;          // SENDs with invalidate that had finished before
  } piece_t;

  // Requester completion's decision on a READ response or ATOMIC acknowledge; one for each such packet, in the order of the
  // packets. The packet waits for its decision before the WQE fetch, in its place in the stream, so that lines of the packet
  // buffer are still freed in order.
  typedef struct packed {
    logic        take;             // 0: only free the lines
    logic        last;             // ends its message: an rdone_t is due when it is placed
    logic [15:0] wqe;              // its SGEs take the payload, from byte off on
    logic [31:0] off;
  } rr_t;

  // Placement to requester completion: the last packet of a READ or ATOMIC has been written, or any of its packets could not
  // be placed. Taken within a few cycles, whatever else requester completion waits for.
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [7:0]       status;      // URDMA_WC_*
  } rdone_t;

  // Placement to the ATOMIC unit, in order, address translated and checked.
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic             dup;         // answer from the stored result; nothing is executed
    logic             fetch_add;   // 0: compare and swap
    logic             flush;       // only reads, at any address
    logic [63:0]      addr;
    logic [63:0]      swap_add;    // values, not bytes of the wire
    logic [63:0]      compare;
    logic [23:0]      psn;
    logic [23:0]      msn;         // for the answer
  } atm_t;

  // The cause of a NAK: maps the CQE status to the syndrome sent to the requester.
  function automatic logic [7:0] nak_of(input logic [7:0] status);
    case (status)
      8'(urdma_hw_pkg::URDMA_WC_LOC_LEN_ERR), 8'(urdma_hw_pkg::URDMA_WC_REM_INV_REQ_ERR): return SYN_NAK_INV;
      8'(urdma_hw_pkg::URDMA_WC_LOC_ACCESS_ERR): return SYN_NAK_ACCESS;
      default: return SYN_NAK_OP;
    endcase
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
