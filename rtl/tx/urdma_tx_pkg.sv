// SPDX-License-Identifier: Apache-2.0
// Types between the stages of the transmit pipeline. rtl/tx/README.md shows the stages.
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
package urdma_tx_pkg;
  import urdma_pkg::*;
  import urdma_hw_pkg::*;

  // ---- sizes -----------------------------------------------------------------------------------
  localparam int TURN_W = 6;         // log2 of turns in flight (scheduled, segmentation not finished)
  localparam int WQB_W = 8;          // log2 of 64-byte blocks in the WQE buffer
  localparam int TURN_BLKS = 16;     // blocks a turn may fetch: 1 KB, one DMA read
  localparam int QUANTUM = 32768;    // bytes that a turn may segment; it may exceed this by one packet
  localparam int LINE_W = 10;        // log2 of 64-byte lines in the packet buffer
  localparam int PKT_W = 8;          // log2 of packets between segmenter and commit
  localparam int FRAG_W = 8;         // log2 of payload DMA reads in flight
  localparam int BUCKET_W = 6;       // low bits of a key's index; pieces being read are counted by them
  // Sequence numbers of fragments and inline packets. Up to 2**(PKT_W-1) packets of 60 fragments (30 SGEs, each across a page
  // border) may have arrived and wait for commit, which compares modulo 2**SEQ_W: they must be less than half of it.
  localparam int SEQ_W = 15;
  localparam int GEN_W = 6;          // generation of fetched WQEs
  localparam int ERA_W = 6;          // life of a QP between resets
  localparam int EXT_BYTES = 32;     // longest extended headers: XRCETH, AtomicETH
  // A turn sends at most QUANTUM / 256 + TURN_BLKS packets; the PSN window is checked once a turn.
  localparam logic [23:0] PSN_WINDOW = 24'd4194304 - 24'd256;

  // a is before b; the numbers are less than half of their range apart
  function automatic logic wqe_before(input logic [15:0] a, input logic [15:0] b);
    logic [15:0] diff;
    diff = a - b;
    return diff[15];
  endfunction
  function automatic logic psn_before(input logic [23:0] a, input logic [23:0] b);
    logic [23:0] diff;
    diff = a - b;
    return diff[23];
  endfunction

  // ---- transports -------------------------------------------------------------------------------
  typedef enum logic [1:0] {XP_RC, XP_UC, XP_UD, XP_XRC} xport_e;

  function automatic xport_e xport_of(input logic [3:0] qp_type);
    case (qp_type)
      4'(URDMA_QPT_UC): return XP_UC;
      4'(URDMA_QPT_UD): return XP_UD;
      4'(URDMA_QPT_XRC_INI), 4'(URDMA_QPT_XRC_TGT): return XP_XRC;
      default: return XP_RC;
    endcase
  endfunction
  // no acknowledgements
  function automatic logic is_unrel(input xport_e x);
    return (x == XP_UC) || (x == XP_UD);
  endfunction
  // the upper three bits of a BTH opcode (IBA volume 1, 5.2.1; XRC: annex A14)
  function automatic logic [2:0] service_of(input xport_e x);
    case (x)
      XP_UC: return 3'b001;
      XP_UD: return 3'b011;
      XP_XRC: return 3'b101;
      default: return 3'b000;
    endcase
  endfunction

  // ---- header fields from the QP's configuration; for a datagram from its WQE ---------------------
  typedef struct packed {
    logic [2:0]       service;    // upper bits of the opcode
    logic [23:0]      dest_qpn;
    logic [15:0]      pkey;
    logic [47:0]      dmac;
    logic [127:0]     dgid;
    logic [7:0]       tclass;
    logic [7:0]       hop_limit;
    logic [19:0]      flow_label;
    logic [15:0]      udp_sport;
    logic [GID_W-1:0] sgid;
    logic             no_sgid;    // the WQE names an entry that does not exist in the GID table: no packet
    logic [2:0]       pcp;        // priority in the VLAN tag
    logic             no_loop;    // to a group: not to members on this NIC
  } path_t;

  function automatic path_t path_of(input qp_cfg_t c);
    path_of = '{service: service_of(xport_of(c.qp_type)), dest_qpn: c.dest_qpn, pkey: c.pkey, dmac: c.dmac,
                dgid: c.dgid, tclass: c.tclass, hop_limit: c.hop_limit, flow_label: c.flow_label, udp_sport: c.udp_sport, sgid: c.sgid,
                no_sgid: 1'b0, pcp: c.pcp, no_loop: c.no_loop};
  endfunction

  // ---- scheduler to segmenter ---------------------------------------------------------------------
  typedef enum logic [2:0] {
    TURN_FETCH,      // n WQEs from index widx, in the WQE buffer from block blk
    TURN_FLUSH,      // n WQEs to complete with FLUSH_ERR
    TURN_FLUSH_START,// tells the scheduler where the flush must begin
    TURN_BAD,        // the producer index is out of range
    TURN_FENCE       // passes through every stage; when it arrives, all items before it have left
  } turn_kind_e;

  typedef struct packed {
    turn_kind_e        kind;
    logic [TURN_W-1:0] slot;
    logic [QPN_W-1:0]  qpn;
    logic [15:0]       widx;
    logic [4:0]        n;
    logic [WQB_W-1:0]  blk;
    logic [4:0]        nblk;      // blocks to give back
    logic [ERA_W-1:0]  era;
    logic [GEN_W-1:0]  gen;
    logic              rw;        // retry: begin at widx, at PSN una, npk packets into the messages from widx on
    logic [23:0]       npk;
    logic [23:0]       una;       // oldest unacknowledged PSN
    logic [15:0]       done;      // WQEs completed
    logic [7:0]        rd_done;   // READs and ATOMICs completed
    logic [15:0]       acks;      // acked_t seen; used to wait for the next one
    logic              lop_have;  // the local operation of WQE lop_idx is done, with lop_status
    logic [15:0]       lop_idx;
    logic [7:0]        lop_status;
    logic [23:0]       psn0;      // first PSN of this era
    logic [2:0]        mtu;
    logic [PD_W-1:0]   pd;
    logic              sig_all;
    logic              priv;
    xport_e            xport;
    logic [31:0]       qkey;
    logic [7:0]        max_rd;    // READs and ATOMICs that may be outstanding
    logic [3:0]        log_stride;
    path_t             path;
  } turn_t;

  // scheduler to WQE fetch
  typedef struct packed {
    logic [TURN_W-1:0] slot;
    logic [WQB_W-1:0]  blk;
    pt_t               pt;
    logic [31:0]       va;
    logic [12:0]       len;
  } fetch_t;

  // segmenter to scheduler: fetch again from idx. The WQEs fetched ahead in generation gen are void.
  typedef enum logic [1:0] {
    RW_AGAIN,        // the quantum of the turn is used up, or its WQEs are completed already
    RW_WAIT,         // no PSN, no READ credit, a fence: wait for an acknowledgement
    RW_LOCAL,        // the local operation of idx is under way: wait for it
    RW_FLUSH         // answer to TURN_FLUSH_START; RW_LOCAL is the other one
  } rewind_kind_e;

  typedef struct packed {
    rewind_kind_e     kind;
    logic [QPN_W-1:0] qpn;
    logic [ERA_W-1:0] era;
    logic [GEN_W-1:0] gen;
    logic [15:0]      idx;
    logic [15:0]      top;       // no WQE from here on has been begun
    logic [15:0]      acks;      // RW_WAIT: value that the turn saw
  } rewind_t;

  // The latest state that the scheduler has published for a QP; the segmenter and commit hold copies. A turn of another
  // generation is void. A completed WQE is not sent again, because its place in the ring, its key and its memory may have
  // been reused. A QP in ERR sends nothing.
  typedef struct packed {
    logic [ERA_W-1:0] era;
    logic [GEN_W-1:0] gen;
    logic [15:0]      done;
    logic             err;
  } look_t;

  // segmenter to urdma_tx_local, and its answer to the scheduler
  typedef struct packed {
    logic [ERA_W-1:0] era;
    mr_op_t           op;        // qpn is in it
  } lop_t;

  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [ERA_W-1:0] era;
    logic [7:0]       status;    // URDMA_WC_*
  } lop_done_t;

  // ---- the head of a send WQE: URDMA_SQE0 to SQE3 ------------------------------------------------------
  typedef struct packed {
    logic [7:0]  op;
    logic        read;            // decoded from op once
    logic        mpe;             // with read: FLUSH, ATOMIC WRITE (annex A19), which count as READs of 0 bytes here
    logic        atomic;
    logic        local_op;
    logic        write;
    logic        imm_op;
    logic        inv_op;
    logic        sig;
    logic        se;
    logic        inl;
    logic        fence;
    logic [7:0]  num_sge;         // 0 if inl
    logic [31:0] imm;
    logic [63:0] raddr;
    logic [31:0] rkey;
    logic [31:0] len;
  } msg_t;

  typedef struct packed {
    logic [63:0] addr;
    logic [31:0] left;
    logic [31:0] key;
  } sge_t;

  function automatic sge_t sge_of(input logic [127:0] w);
    sge_of = '{addr: w[URDMA_SGE0_ADDR_LSB+:64], left: w[URDMA_SGE1_LENGTH_LSB+:32], key: w[URDMA_SGE1_LKEY_LSB+:32]};
  endfunction

  // ---- segmenter to payload read -------------------------------------------------------------------
  typedef enum logic [1:0] {
    PIECE_MEM,       // key, va, len: memory to read
    PIECE_INLINE,    // the whole packet comes through the inline FIFO
    PIECE_NONE       // only ends a packet that was given up
  } piece_kind_e;

  typedef struct packed {
    piece_kind_e     kind;
    logic            first;       // of its packet
    logic            last;
    logic [12:0]     pkt_len;     // payload of the packet
  } piece_meta_t;

  typedef struct packed {
    piece_meta_t     meta;
    logic            remote;      // payload of a READ response: checked as remote read, for qpn
    logic [QPN_W-1:0] qpn;
    logic [PD_W-1:0] pd;
    logic [31:0]     key;
    logic [63:0]     va;
    logic [12:0]     len;
  } piece_t;

  // payload read to gather: one DMA read
  typedef struct packed {
    logic [LINE_W-1:0] line;      // place of its first byte
    logic [5:0]        off;
    logic [12:0]       len;
    logic              pkt_last;
    logic [PKT_W-1:0]  slot;      // for the error mark
  } frag_t;

  // payload read to commit: all reads of a packet have been requested
  typedef struct packed {
    logic [7:0]        status;    // URDMA_WC_*
    logic [SEQ_W-1:0]  seq;       // the packet is complete when the count of fragments (inline packets) reaches this
    logic [PKT_W-1:0]  slot;
  } issued_t;

  // ---- segmenter and responses to commit, in order ----------------------------------------------------
  typedef struct packed {
    logic             fence;      // only a marker
    logic             resp;       // of urdma_tx_resp: no message of the send queue; eom, wqe and similar fields are not used
    logic [QPN_W-1:0] qpn;
    logic [ERA_W-1:0] era;        // resp: life of the QP's responses, see urdma_tx_resp
    logic             fresh;      // first of its QP in this era; not resp
    // packet
    logic [7:0]       opcode;     // BTH opcode as for RC: path.service replaces its upper bits
    logic             se;
    logic             ackreq;
    logic             unrel;      // of a QP of UC or UD
    logic [23:0]      psn;
    logic [5:0]       ext_len;    // bytes of extended headers, a multiple of 4
    logic [8*EXT_BYTES-1:0] ext;  // first byte on the wire in [7:0]
    logic [12:0]      plen;
    logic             inl;
    // message
    logic             resent;     // the message was sent completely before: no sent_t unless it fails
    logic             again;      // the packet was sent before: counts as TX_RETRANS; resp: it answers a repeated READ
    logic             local_op;   // eom of a local operation: a sent_t, no packet
    logic             eom;        // ends its message: a sent_t follows
    logic [7:0]       status;     // not 0: no packet, the message fails (or is flushed)
    logic [15:0]      wqe;
    logic [7:0]       wr_opcode;
    logic             signaled;
    logic [31:0]      msg_len;
    logic [23:0]      sent_psn;   // for sent_t
    path_t            path;
  } pdesc_t;

  // The descriptor is a packet that takes a place among the frames to send: not a marker, a local operation, or a message
  // that only fails, and not an acknowledgement, which has a lane of its own.
  function automatic logic is_packet(input pdesc_t d);
    return !d.fence && !d.local_op && (d.opcode != BTH_ACK) && ((d.status == '0) || (d.plen != '0));
  endfunction

  // ---- commit and ack queue to header assembly ------------------------------------------------------------
  typedef struct packed {
    logic             drop;       // no frame; only free the payload's lines
    logic             again;      // as in pdesc_t, of the send queue
    logic [QPN_W-1:0] qpn;
    logic [7:0]       opcode;     // as in pdesc_t
    logic             se;
    logic             ackreq;
    logic [23:0]      psn;
    logic [5:0]       ext_len;    // bytes of extended headers, a multiple of 4
    logic [8*EXT_BYTES-1:0] ext;  // first byte on the wire in [7:0]
    logic [12:0]      plen;
    path_t            path;
  } pkt_t;

  localparam int HDR_BYTES = 110;  // Ethernet with VLAN 18, IPv6 40, UDP 8, BTH 12, extended 32

  // header assembly to frame assembly
  typedef struct packed {
    logic                   drop;
    logic                   loop;    // to a group: it is looped back as well, to members on this NIC
    logic [QPN_W-1:0]       qpn;
    logic [7:0]             opcode;  // BTH
    logic [23:0]            dqpn;
    logic [23:0]            psn;
    logic                   vlan;
    logic                   ipv6;
    logic [6:0]             hlen;    // bytes of header
    logic [12:0]            plen;    // bytes of payload
    logic [12:0]            icrc_at; // first byte of the ICRC
    logic [6:0]             beats;
    logic [6:0]             last_len;// bytes of the last beat
    logic [HDR_BYTES*8-1:0] hdr;
  } hdr_t;

endpackage
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
