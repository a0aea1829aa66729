// SPDX-License-Identifier: Apache-2.0
// Types and sizes shared by the blocks of the NIC. See docs/rtl-interfaces.md for the rules of
// each port; layouts seen by software are in urdma_hw_pkg, generated from driver/urdma_hw.h.
/* verilator lint_off UNUSEDPARAM */
package urdma_pkg;

  // ---- sizes -----------------------------------------------------------------------------------
  localparam int QPN_W = 12;       // queue pairs: 2**QPN_W
  localparam int CQN_W = 12;       // completion queues
  localparam int EQN_W = 6;        // event queues, EQ 0 takes commands and asynchronous events
  localparam int MRI_W = 14;       // memory regions (index part of a key)
  localparam int ACC_W = 6;        // rights of a region or window (URDMA_ACC_*)
  localparam int PD_W = 12;        // protection domains
  localparam int SRQN_W = 10;      // shared receive queues
  localparam int SRQ_LIFE_W = 8;   // creations of an SRQ number that can be told apart: 2**SRQ_LIFE_W
  localparam int CSET_W = 8;       // counter sets of QPs; set 0 is used for all QPs to which software has assigned none
  localparam int DBP_W = 10;       // 4 KB doorbell pages in BAR2
  localparam int DM_W = 17;        // bytes of device memory: 2**DM_W
  localparam int DM_OFFSET_W = 22; // where it is in BAR2: 2**DM_OFFSET_W
  localparam int GID_W = 5;        // GID table entries
  localparam int VEC_W = 6;        // MSI-X vectors
  localparam int INFL_W = 7;       // log2 of the unacknowledged messages a QP may have
  localparam int RDA_W = 4;        // log2 of READs and ATOMICs a QP may have outstanding, each way
  localparam int ETHQ_W = 3;       // Ethernet queue pairs
  localparam int ETHQ_N = 1 << ETHQ_W;
  localparam int ETH_UC_N = 16;    // unicast addresses besides the port's
  localparam int ETH_MAX_FRAME = 9216;  // bytes without FCS and tag
  localparam int ETH_MIN_FRAME = 60;    // without FCS
  localparam int ETH_TX_DESCS = 32;     // descriptors of a frame
  localparam int ETH_LOG_RING = 15;     // greatest rings: descriptors, completions
  localparam int ETH_LOG_CQ = 16;

  // ---- PCIe side: what rtl/pcie offers the rest ------------------------------------------------
  // An address with bit 63 (URDMA_ADDR_DM) is in device memory.
  //
  // DMA read. A client holds valid until ready. Length 1..4096 bytes, any alignment; it may cross 4 KB and
  // maximum-read-request boundaries (the engine splits it). Responses come back in the order in which requests were granted
  // over ALL clients, ceil(len/64) beats each, first byte in lane 0 of the first beat, dense. There is NO back-pressure on
  // responses: reserve space before you request.
  typedef struct packed {
    logic [63:0] addr;
    logic [12:0] len;
  } dma_rd_req_t;

  typedef struct packed {
    logic [511:0] data;
    logic         last;   // last beat of this request
    logic         err;    // with last: some byte of the request failed (UR, CA, poison, time-out)
  } dma_rd_rsp_t;         // shared by all clients; each has its own valid bit

  localparam int RD_CMD = 0;       // command fetch
  localparam int RD_SQ = 1;        // send WQEs
  localparam int RD_PAY = 2;       // transmit payload
  localparam int RD_RQ = 3;        // receive WQEs
  localparam int RD_MTT1 = 4;      // page tables, last level
  localparam int RD_MTT2 = 5;      // page tables, directory level
  localparam int RD_ATM = 6;       // operands of ATOMICs (responder)
  localparam int RD_ETD = 7;       // Ethernet: transmit descriptors
  localparam int RD_ETX = 8;       // Ethernet: transmit frames
  localparam int RD_ERD = 9;       // Ethernet: receive descriptors
  localparam int RD_N = 10;

  // DMA write. valid/ready per beat; addr and len are valid in the first beat of a request. Length 1..4096 bytes, data dense
  // from lane 0, ceil(len/64) beats, last on the last one. Requests reach the link in the order in which their last beats
  // were accepted; a request that a client has begun is not interleaved with others.
  typedef struct packed {
    logic [63:0]  addr;
    logic [12:0]  len;
    logic [511:0] data;
    logic         last;
  } dma_wr_t;

  localparam int WR_PAY = 0;       // received payload
  localparam int WR_CQ = 1;        // CQEs
  localparam int WR_EQ = 2;        // EQEs
  localparam int WR_CMD = 3;       // command completions
  localparam int WR_ATM = 4;       // results of ATOMICs (responder)
  localparam int WR_ERX = 5;       // Ethernet: received frames
  localparam int WR_ECQ = 6;       // Ethernet: completions
  localparam int WR_N = 7;

  // Register bus (BAR0), one 64-bit word an access. Reads are answered in order.
  typedef struct packed {
    logic        write;
    logic [15:0] addr;    // byte address in BAR0, 8-byte aligned
    logic [63:0] wdata;
    logic [7:0]  strb;
  } reg_req_t;

  // Doorbell (BAR2): an aligned 8-byte write. rtl/pcie drops and counts other writes.
  typedef struct packed {
    logic [DBP_W-1:0] page;
    logic [11:0]      offset;  // in the page, 8-byte aligned
    logic [63:0]      data;
  } db_t;

  // The host's access to device memory (BAR2, inside rtl/pcie)
  typedef struct packed {
    logic            write;
    logic [DM_W-1:0] addr;     // 8-byte aligned
    logic [63:0]     wdata;
    logic [7:0]      strb;
  } dm_req_t;

  // ---- rings and page tables (see URDMA_RING_* in driver/urdma_hw.h) ---------------------------
  typedef struct packed {
    logic [63:0] addr;         // base (levels 0) or table
    logic [1:0]  levels;       // 0 contiguous, 1 table, 2 directory of tables
    logic [5:0]  page_shift;   // 12..31
  } pt_t;

  typedef struct packed {
    pt_t        pt;
    logic [4:0] log_entries;
    logic [3:0] log_stride;
  } ring_t;

  // ---- address translation service (rtl/mr) -----------------------------------------------------
  // One request is one contiguous piece of at most 4096 bytes. It is answered by one response for each page it touches (1 or
  // 2; pages are at least 4 KB), in order, with last on the last one. On an error there is one response, with last and a
  // status other than MR_OK. Each client's responses come in request order; valid/ready on both sides. A client must accept
  // responses without waiting for the progress of another client.
  typedef enum logic [2:0] {
    MR_OK,
    MR_BAD_KEY,      // no such index, or wrong variant
    MR_BAD_PD,
    MR_BAD_RANGE,    // also: not aligned although aligned is set
    MR_BAD_ACCESS,
    MR_DMA_ERR       // a page table could not be read
    // a memory window used through another QP than the one it is bound to: MR_BAD_PD
  } mr_status_e;

  typedef struct packed {
    logic        ring;   // 1: translate va in pt, no key; 0: look up key and check
    pt_t         pt;     // ring: the table; va counts from the ring's first byte
    logic [31:0] key;    // index << 8 | variant
    logic [PD_W-1:0] pd;
    logic [QPN_W-1:0] qpn; // the QP that makes the access: a type 2B window belongs to one
    logic [ACC_W-1:0] acc; // rights needed (URDMA_ACC_*); 0: local read
    logic        whole;  // use the first byte that the key opens instead of va; not for a region of any address
    logic        aligned; // the bytes must begin at a multiple of 8 in memory: those of an ATOMIC
    logic [63:0] va;
    logic [12:0] len;    // 1..4096
  } mr_req_t;

  typedef struct packed {
    mr_status_e  status;
    logic [63:0] addr;   // bus address
    logic [12:0] len;    // bytes of this fragment
    logic        last;   // last fragment of the request
  } mr_rsp_t;

  localparam int MRC_TX = 0;       // transmit payload
  localparam int MRC_RX = 1;       // receive payload
  localparam int MRC_SQ = 2;       // send WQE rings
  localparam int MRC_RQ = 3;       // receive WQE rings
  localparam int MRC_CQ = 4;       // CQE rings
  localparam int MRC_N = 5;

  // Operations change regions and windows, one at a time in urdma_mr. Each is answered when it has taken effect for every
  // mr_req accepted later. Pieces checked before continue; a client that must not overlap with them must wait for them.
  typedef enum logic [2:0] {
    MRO_CREATE,      // ctl: a free index; ctl has checked rights and format
    MRO_DESTROY,     // ctl: by index alone; MRO_BUSY while windows are bound to the region
    MRO_REG,         // tx, REG_MR: an invalid FAST region becomes valid with the given key, rights, range and table
    MRO_INV_LOCAL,   // tx, LOCAL_INV: a FAST region becomes invalid, a window of type 2B unbound
    MRO_INV_REMOTE,  // rx, SEND with invalidate: the same; a window only through the QP it is bound to
    MRO_BIND,        // tx, BIND_MW: a window is bound to the range of the region lkey; a type 2B window must be unbound,
                     // a bound type 1 window is unbound first, and with len 0 it stays unbound
    MRO_QP_END       // ctl, RESET and DESTROY of a QP: one window bound to it is unbound; MRO_BUSY: ask again; MRO_OK:
                     // none is left
  } mr_op_e;

  typedef struct packed {
    mr_op_e          op;
    logic [1:0]      kind;         // CREATE: URDMA_MRK_*
    logic [31:0]     key;          // index << 8 | variant; REG, BIND: the new one
    logic [31:0]     lkey;         // BIND: the region
    logic [PD_W-1:0] pd;           // CREATE: the owner; else that of the QP, which must match
    logic [QPN_W-1:0] qpn;         // not CREATE, DESTROY
    logic [ACC_W-1:0] acc;
    logic            all;          // CREATE: any address, untranslated
    logic            zero_based;   // CREATE, REG, BIND: addresses begin at 0
    logic [63:0]     va;           // BIND: in the addresses of the region
    logic [63:0]     len;
    pt_t             pt;           // CREATE, REG
  } mr_op_t;

  typedef enum logic [2:0] {
    MRO_OK,
    MRO_BAD_KEY,     // no such index, wrong variant (INV; of lkey), wrong kind, REG or BIND of one in use, INV of one not in use
    MRO_BAD_PD,
    MRO_BAD_RANGE,   // BIND: not within the region; REG: end beyond 2**64, page size, levels
    MRO_BAD_ACCESS,  // BIND: region without MW_BIND; remote write or atomic without local write of the region (REG: the same);
                     // INV_REMOTE of a FAST region without a remote right
    MRO_BUSY,        // DESTROY, INV: windows are bound; QP_END: there may be more
    MRO_ENDED        // BIND: as MRO_OK, and an earlier binding of the window has ended
  } mro_status_e;

  localparam int MROC_CTL = 0;
  localparam int MROC_TX = 1;
  localparam int MROC_RX = 2;
  localparam int MROC_N = 3;

  // ---- QP configuration (owner: queue/urdma_qp_mgr) ------------------------------------------------
  typedef struct packed {
    logic             valid;       // created
    logic [3:0]       state;       // URDMA_QPS_*
    logic [3:0]       qp_type;
    logic             sig_all;
    logic             priv;        // of the kernel: may post REG_MR
    logic             no_loop;     // UD: a datagram to a group is not looped back to members on this NIC
    logic             srq;         // receive WQEs come from SRQ srqn; rq is not used
    logic [SRQN_W-1:0] srqn;
    logic [PD_W-1:0]  pd;
    logic [DBP_W-1:0] db_page;
    logic [CQN_W-1:0] send_cq;
    logic [CQN_W-1:0] recv_cq;
    ring_t            sq;
    ring_t            rq;
    logic [2:0]       mtu;         // 1: 256 .. 5: 4096
    logic [4:0]       timeout;
    logic [2:0]       retry;
    logic [2:0]       rnr_retry;
    logic [4:0]       min_rnr;
    logic [23:0]      dest_qpn;
    logic [7:0]       max_rd_atomic;
    logic [7:0]       max_dest_rd_atomic;
    logic [31:0]      qkey;
    logic [15:0]      pkey;
    logic [3:0]       acc;         // remote write, read, atomic; FLUSH
    logic [GID_W-1:0] sgid;
    logic [47:0]      dmac;        // byte 0 in [7:0]
    logic [127:0]     dgid;        // byte 0 in [7:0]; IPv4 ::ffff:a.b.c.d
    logic [7:0]       tclass;
    logic [7:0]       hop_limit;
    logic [19:0]      flow_label;
    logic [15:0]      udp_sport;
    logic [2:0]       pcp;         // priority in the VLAN tag, if the GID has one
  } qp_cfg_t;

  // Context read port: req (valid/ready, qpn), answered in order per reader by rsp_valid and the
  // configuration, latency not fixed, no back-pressure (reserve space first).
  localparam int QPR_DB = 0;       // doorbell check
  localparam int QPR_TX = 1;       // sender: data and acknowledgement packets
  localparam int QPR_RX = 2;       // responder
  localparam int QPR_ACK = 3;      // requester completion
  localparam int QPR_N = 4;

  typedef struct packed {
    logic         valid;
    logic         ipv4;
    logic         vlan_valid;
    logic [11:0]  vlan;
    logic [47:0]  smac;            // byte 0 in [7:0]
    logic [127:0] gid;             // byte 0 in [7:0]
  } gid_t;

  // ---- QP control: qp_mgr to the owners of QP state (tx, rx responder, rx requester completion) -----
  // One message at a time to each owner (valid/ready). An owner accepts a message when it has taken effect: work that the
  // owner starts later for the QP does not see the old state. QUERY is answered on the owner's own response port when
  // accepted.
  typedef enum logic [2:0] {
    QPC_RESET,     // forget all state: indexes 0, PSNs 0, error flag clear
    QPC_RQ_PSN,    // rx: expected PSN (to RTR)
    QPC_SQ_PSN,    // tx, ack: next PSN, oldest unacknowledged PSN (to RTS)
    QPC_ERR,       // stop; complete all posted WQEs (now and later) with FLUSH_ERR
    QPC_QUERY,
    QPC_SQD,       // tx: begin no new message; psn[0]: report SQ_DRAINED when the messages begun are completed
    QPC_SQ_RUN     // tx: from SQD to RTS
  } qpc_op_e;

  typedef struct packed {
    qpc_op_e          op;
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;
  } qpc_t;

  typedef struct packed {
    logic [23:0] psn;    // tx: next to send; rx: expected; ack: oldest unacknowledged
    logic [15:0] pi;     // tx: SQ producer; rx: RQ producer
    logic [15:0] ci;     // ack: SQ completed; rx: RQ completed
    logic        draining; // tx: in SQD, and a message that was begun is not completed
  } qpc_rsp_t;

  // A data path block has met an error that moves the QP to ERR (valid/ready, to qp_mgr): qp_mgr sets state ERR, sends
  // QPC_ERR to all owners and raises the event (0: none). Repeated reports are harmless. With only_event the state stays:
  // COMM_EST (while the QP is in RTR), SQ_DRAINED (while it is in SQD), LAST_WQE (while it is in ERR).
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic             only_event;
    logic [7:0]       event_type;  // URDMA_EV_*
  } qp_err_t;

  localparam int QPE_RX = 0;       // responder
  localparam int QPE_ACK = 1;      // requester completion
  localparam int QPE_CQ = 2;       // CQE lost
  localparam int QPE_TX = 3;       // READ response refused (remote access), SQ drained
  localparam int QPE_N = 4;

  // ---- multicast groups (owner: rx/urdma_rx_mcast) --------------------------------------------------
  // One operation at a time; valid and payload stay until ready, and the status is valid with ready. After LEAVE or DETACH
  // no datagram to the group goes to the QP.
  typedef enum logic [1:0] {
    MC_ATTACH,
    MC_DETACH,
    MC_LEAVE       // all groups of the QP; MC_OK also if it is in none
  } mc_kind_e;

  typedef struct packed {
    mc_kind_e         kind;
    logic [QPN_W-1:0] qpn;
    logic [127:0]     gid;         // byte 0 in [7:0]; IPv4 ::ffff:a.b.c.d
  } mc_op_t;

  typedef enum logic [1:0] {
    MC_OK,
    MC_EXISTS,     // ATTACH: the QP is a member already
    MC_FULL,       // ATTACH: no free group or no free member slot
    MC_NONE        // DETACH: the QP is not a member
  } mc_status_e;

  // ---- shared receive queues (owner: rx/urdma_srq) --------------------------------------------------
  typedef struct packed {
    ring_t           ring;         // of the WQEs; the ring of indices follows them, under the same page table
    logic [PD_W-1:0] pd;           // of the keys in the WQEs; XRC: of every key that a request uses
    logic            xrc;          // for QPs of type XRC_TGT only
    logic [PD_W-1:0] xrcd;         // XRC: the domain; cfg.pd of such a QP must match
    logic [CQN_W-1:0] cqn;         // XRC: of the completions
  } srq_cfg_t;

  // One operation at a time; valid and payload stay until ready, the answer is valid with it.
  typedef enum logic [1:0] {
    SRO_CREATE,    // indexes 0, no limit
    SRO_MODIFY,    // arm the limit, 0: disarm it
    SRO_QUERY,
    SRO_DESTROY    // after the answer no more events about the SRQ come
  } sro_e;

  typedef struct packed {
    sro_e              kind;
    logic [SRQN_W-1:0] srqn;
    logic [15:0]       limit;      // MODIFY
    srq_cfg_t          cfg;        // CREATE
  } srq_op_t;

  typedef struct packed {
    logic [15:0] ci;               // consumer of the index ring
    logic [15:0] pi;               // producer
    logic [15:0] limit;            // 0: not armed
  } srq_ans_t;                     // QUERY

  // the WQE that a message may take
  typedef struct packed {
    logic        exists;
    logic        dead;             // EV_SRQ_ERR was raised
    logic        fresh;            // no WQE was taken since the SRQ was created
    logic [SRQ_LIFE_W-1:0] life;   // how often the number was created
    logic        has_wqe;          // one is posted, and the SRQ is not dead
    logic [15:0] index;            // place in the ring of indices, below 2**log_entries
    logic [15:0] left;             // posted indices from there on
    srq_cfg_t    cfg;
  } srq_got_t;

  // ---- counters of QPs (owner: queue/urdma_qp_cnt) --------------------------------------------------
  // Each source has its own event port, at most one event per cycle, never refused. The bits select the counters of the QP's
  // set that add 1; bytes is added to its counter.
  localparam int QC_VALUE_W = 63;  // bits of a counter

  typedef struct packed {
    logic             no_wqe;      // QCNT_RX_PKTS to QCNT_RX_NO_WQE, the last one first
    logic             seq_err;
    logic             dup;
    logic             atomic;
    logic             read;
    logic             write;
    logic             send;
    logic             bytes;
    logic             pkt;
  } qc_rx_hit_t;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [12:0]      bytes;
    qc_rx_hit_t       hit;
  } qc_rx_t;             // responder: a packet

  typedef struct packed {
    logic             flush;       // QCNT_RESP_ERR, QCNT_RESP_FLUSH
    logic             err;
  } qc_resp_hit_t;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    qc_resp_hit_t     hit;
  } qc_resp_t;           // responder: a CQE with an error

  typedef struct packed {
    logic             again;       // QCNT_TX_PKTS to QCNT_TX_RETRANS
    logic             bytes;
    logic             pkt;
  } qc_tx_hit_t;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [12:0]      bytes;
    qc_tx_hit_t       hit;
  } qc_tx_t;             // tx: a packet

  typedef struct packed {
    logic             flush;       // QCNT_RX_ACK to QCNT_REQ_FLUSH
    logic             err;
    logic             timeout;
    logic             read_gap;
    logic             nak_rnr;
    logic             nak_seq;
    logic             ack;
  } qc_req_hit_t;
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    qc_req_hit_t      hit;
  } qc_req_t;            // requester completion: an acknowledgement, a time-out, or a CQE with an error

  // One operation at a time; valid and payload stay until ready, the answer is valid with it.
  typedef enum logic [1:0] {
    QCO_BIND,      // the QP has set cset from now on
    QCO_QUERY,     // a group of counters of the set
    QCO_CLEAR
  } qc_kind_e;

  typedef struct packed {
    qc_kind_e          kind;
    logic [QPN_W-1:0]  qpn;        // BIND
    logic [CSET_W-1:0] cset;
    logic [1:0]        group;      // QUERY
  } qc_op_t;

  typedef logic [urdma_hw_pkg::URDMA_QCNT_GROUP-1:0][QC_VALUE_W-1:0] qc_ans_t;

  // ---- doorbells after the ownership check -----------------------------------------------------------
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      pi;
  } wq_db_t;             // sq_db to tx, rq_db to rx

  typedef struct packed {
    logic [SRQN_W-1:0] srqn;
    logic [15:0]       pi;         // of the ring of indices
  } srq_db_t;

  typedef struct packed {
    logic [CQN_W-1:0] cqn;
    logic [DBP_W-1:0] page;        // the CQ block checks ownership itself
    logic [1:0]       arm;
    logic [31:0]      ci;
  } cq_db_t;

  typedef struct packed {
    logic [EQN_W-1:0] eqn;
    logic [1:0]       arm;
    logic [31:0]      ci;
  } eq_db_t;

  // ---- completions and events ---------------------------------------------------------------------
  typedef struct packed {
    logic             valid;       // 0: destroy
    ring_t            ring;
    logic [EQN_W-1:0] eqn;
    logic [DBP_W-1:0] db_page;
    logic             overrun;     // full: overwrite the oldest CQE
    logic [15:0]      count;       // moderation: CQEs, microseconds; 0: no such limit
    logic [15:0]      period;
  } cq_cfg_t;

  // Fields that a configuration changes in a CQ. RESIZE takes only ring, and the consumer index given with it; MODERATE only
  // count and period. The CQ exists for both, and is created without moderation.
  typedef enum logic [1:0] {CQO_SET, CQO_RESIZE, CQO_MODERATE} cq_cfg_op_e;

  // The answer to RESIZE, two cycles after it was accepted, until the next configuration.
  typedef struct packed {
    logic        busy;             // refused: more CQEs wait than the ring has entries
    logic [31:0] base;             // index of the first CQE in the new ring
  } cq_resized_t;

  typedef struct packed {
    logic             valid;       // 0: destroy
    logic [4:0]       log_entries;
    logic [63:0]      addr;
    logic [VEC_W-1:0] vec;
  } eq_cfg_t;

  // A CQE to write: cqe is complete except for the phase bit and the cycle word. It raises an event if the CQ is armed for
  // any, or if armed for solicited and (solicited or status not 0). If the CQ is full or dead, the CQE is dropped and
  // urdma_cq reports the QP (QPE_CQ).
  typedef struct packed {
    logic [CQN_W-1:0] cqn;
    logic             solicited;
    logic [255:0]     cqe;         // urdma_hw_pkg URDMA_CQE*
  } cqe_req_t;

  localparam int CQC_RX = 0;       // responder
  localparam int CQC_ACK = 1;      // requester completion
  localparam int CQC_N = 2;

  typedef struct packed {
    logic [EQN_W-1:0] eqn;
    logic [7:0]       ev_type;     // URDMA_EV_*
    logic [23:0]      obj;
    logic [23:0]      data;
  } eqe_req_t;

  localparam int EQC_CQ = 0;       // urdma_cq
  localparam int EQC_MGR = 1;      // qp_mgr: asynchronous events
  localparam int EQC_CMD = 2;      // command queue
  localparam int EQC_PORT = 3;     // link
  localparam int EQC_SRQ = 4;      // urdma_srq
  localparam int EQC_N = 5;

  // ---- transport: messages between rx and tx ------------------------------------------------------
  // tx to requester completion: one for each WQE, when the last packet of its message is made for the first time (or the WQE
  // is invalid, is flushed, or was a local operation), in SQ order of the QP. A READ takes as many PSNs as its response has
  // packets; psn is the last of them. A local operation takes none: psn is the one before, so it completes when all WQEs
  // before it are acknowledged. tx sends it before or with the packet, so no answer can arrive earlier.
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [15:0]      wqe;         // free-running index
    logic [23:0]      psn;         // of the last packet; for status not 0: next PSN at that point
    logic [7:0]       opcode;      // URDMA_WR_*
    logic             signaled;
    logic [7:0]       status;      // URDMA_WC_*: 0 sent; else the error to report, QP goes to ERR
    logic             resent;      // with status not 0: failed on retransmission; it has an entry already
    logic             unrel;       // UC, UD: complete as soon as it is reported
    logic [31:0]      len;
  } sent_t;

  // tx to requester completion: a request packet goes to header assembly, also a retransmitted one. An answer to a PSN
  // above the newest of these is invalid. The ACK timer waits for the answer to the newest packet that requests one.
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;         // the last one it takes: of a READ, that of the last response
    logic             asks;        // for an answer: ACK request, READ, ATOMIC
  } made_t;

  // requester completion to tx: progress of a QP, and the reaction to loss. One stream, in order.
  typedef enum logic [1:0] {
    AK_PROGRESS,
    AK_RETRY,          // resend from una_psn, which lies in (or begins) the message of WQE wqe_done
    AK_HOLD            // RNR: send nothing until AK_RETRY
  } acked_kind_e;

  typedef struct packed {
    acked_kind_e      kind;
    logic [QPN_W-1:0] qpn;
    logic [15:0]      wqe_done;    // all WQEs before this index are completed
    logic [23:0]      first_psn;   // first PSN of WQE wqe_done
    logic [23:0]      una_psn;     // oldest unacknowledged PSN; of a READ: next response
    logic [7:0]       rd_done;     // READs and ATOMICs completed, counted from SQ_PSN on, modulo 256
  } acked_t;

  // responder to tx: the answers to send, in order.
  typedef enum logic [1:0] {
    RSP_ACK,           // ACK, NAK, RNR NAK: an ACK covers the ones before it
    RSP_READ,          // READ response of len bytes at va; its key is checked when it is made. FLUSH, ATOMIC WRITE: len 0
    RSP_ATOMIC         // ATOMIC acknowledge with the original value in va
  } rsp_e;

  typedef struct packed {
    rsp_e             kind;
    logic             dup;         // RSP_READ, RSP_ATOMIC: repeated
    logic [QPN_W-1:0] qpn;
    logic [23:0]      psn;         // RSP_READ: of the first response packet
    logic [7:0]       syndrome;    // AETH
    logic [23:0]      msn;         // MSN of the answer
    logic [PD_W-1:0]  pd;          // RSP_READ: of the key
    logic [31:0]      key;
    logic [63:0]      va;
    logic [31:0]      len;
  } ack_req_t;

  // ---- opcodes of the BTH, reliable connection (IBA volume 1, table 38) ----------------------------
  localparam logic [7:0] BTH_SEND_FIRST = 8'h00;
  localparam logic [7:0] BTH_SEND_MIDDLE = 8'h01;
  localparam logic [7:0] BTH_SEND_LAST = 8'h02;
  localparam logic [7:0] BTH_SEND_LAST_IMM = 8'h03;
  localparam logic [7:0] BTH_SEND_ONLY = 8'h04;
  localparam logic [7:0] BTH_SEND_ONLY_IMM = 8'h05;
  localparam logic [7:0] BTH_WRITE_FIRST = 8'h06;
  localparam logic [7:0] BTH_WRITE_MIDDLE = 8'h07;
  localparam logic [7:0] BTH_WRITE_LAST = 8'h08;
  localparam logic [7:0] BTH_WRITE_LAST_IMM = 8'h09;
  localparam logic [7:0] BTH_WRITE_ONLY = 8'h0a;
  localparam logic [7:0] BTH_WRITE_ONLY_IMM = 8'h0b;
  localparam logic [7:0] BTH_READ_REQ = 8'h0c;
  localparam logic [7:0] BTH_READ_RSP_FIRST = 8'h0d;
  localparam logic [7:0] BTH_READ_RSP_MIDDLE = 8'h0e;
  localparam logic [7:0] BTH_READ_RSP_LAST = 8'h0f;
  localparam logic [7:0] BTH_READ_RSP_ONLY = 8'h10;
  localparam logic [7:0] BTH_ACK = 8'h11;
  localparam logic [7:0] BTH_ATOMIC_ACK = 8'h12;
  localparam logic [7:0] BTH_CMP_SWAP = 8'h13;
  localparam logic [7:0] BTH_FETCH_ADD = 8'h14;
  localparam logic [7:0] BTH_SEND_LAST_INV = 8'h16;
  localparam logic [7:0] BTH_SEND_ONLY_INV = 8'h17;
  localparam logic [7:0] BTH_FLUSH = 8'h1c;          // annex A19
  localparam logic [7:0] BTH_ATOMIC_WRITE = 8'h1d;

  // ---- frames -------------------------------------------------------------------------------------
  typedef struct packed {
    logic [511:0] data;            // byte 0 of the frame in [7:0]
    logic [63:0]  keep;
    logic         last;
    logic         err;
  } mac_beat_t;

  // a beat as urdma_window shows it
  typedef struct packed {
    logic         last;
    logic         err;
    logic [6:0]   n;               // bytes
    logic [511:0] data;
  } mac_window_t;

  // ---- Ethernet function (rtl/eth, docs/hardware-interface.md section 12) ----------------------
  typedef struct packed {
    logic                        rx_enable;
    logic                        promisc;
    logic                        allmulti;
    logic                        vlan_strip;
    logic                        vlan_filter;
    logic                        loopback;
    logic                        hash_ipv4, hash_ipv6, hash_tcp, hash_udp;
    logic [319:0]                key;        // byte 0 in [7:0]
    logic [47:0]                 mac;        // the port's, byte 0 in [7:0]
    logic [ETH_UC_N-1:0]         uc_valid;
    logic [ETH_UC_N-1:0][47:0]   uc;
    logic [255:0]                mc_hash;
    logic [127:0][ETHQ_W-1:0]    table_;     // RSS indirection
  } eth_cfg_t;

  // One side of a queue pair. The owner of a ring (tx, rx, cq) starts at index 0 when enable rises. After enable has fallen,
  // the owner finishes its work in flight and then clears its active bit. urdma_eth_regs lets enable rise only while active
  // is 0.
  typedef struct packed {
    logic        enable;
    logic [63:0] base;
    logic [4:0]  log_entries;  // tx, rx: 6..15; cq: 6..16
  } eth_ring_t;

  typedef struct packed {
    logic [VEC_W-1:0] vec;
    logic [7:0]       rx_frames, tx_frames;
    logic [15:0]      rx_usecs, tx_usecs;
  } eth_int_t;

  typedef enum logic [1:0] {EDB_TX, EDB_RX, EDB_CQ} eth_db_e;

  // A doorbell of the Ethernet function; always taken.
  typedef struct packed {
    eth_db_e           kind;
    logic [ETHQ_W-1:0] q;
    logic              arm;
    logic [31:0]       index;  // tx, rx: 16 bits
  } eth_db_t;

  // To urdma_eth_cq, when the reported work is done: for rx, the DMA writes are accepted; for tx, the reads are answered.
  typedef struct packed {
    logic [ETHQ_W-1:0] q;
    logic              err;
    logic [15:0]       ci;     // descriptors before it are done
  } eth_txc_t;

  typedef struct packed {
    logic [ETHQ_W-1:0] q;
    logic              vlan;   // a tag was taken out
    logic [15:0]       tci;
    logic [1:0]        hash_type;
    logic [31:0]       hash;
    logic [7:0]        bufs;
    logic [15:0]       len;
    logic [15:0]       csum;
    logic [15:0]       index;  // of the first buffer
  } eth_rxc_t;

  // ---- numbers in network byte order: most significant byte first, at the lowest address ---------
  function automatic logic [15:0] be16(input logic [15:0] x);
    return {x[7:0], x[15:8]};
  endfunction
  function automatic logic [23:0] be24(input logic [23:0] x);
    return {x[7:0], x[15:8], x[23:16]};
  endfunction
  function automatic logic [31:0] be32(input logic [31:0] x);
    return {x[7:0], x[15:8], x[23:16], x[31:24]};
  endfunction
  function automatic logic [63:0] be64(input logic [63:0] x);
    return {be32(x[31:0]), be32(x[63:32])};
  endfunction

  // ---- a line rotated away from lane 0 by n bytes; bits of n that are constant cost nothing --------
  function automatic logic [511:0] rol_bytes(input logic [511:0] d, input logic [5:0] n);
    logic [511:0] v;
    v = d;
    if (n[5]) v = {v[255:0], v[511:256]};
    if (n[4]) v = {v[383:0], v[511:384]};
    if (n[3]) v = {v[447:0], v[511:448]};
    if (n[2]) v = {v[479:0], v[511:480]};
    if (n[1]) v = {v[495:0], v[511:496]};
    if (n[0]) v = {v[503:0], v[511:504]};
    return v;
  endfunction

  // The NIC's parts: instances with their own clock for the simulator (urdma_clk). On an FPGA they have no meaning.
  typedef enum int {
    PART_MR,
    PART_CQ,
    PART_EQ,
    PART_IRQ_MUX,
    PART_FRAME_MUX,
    PART_LOOPBACK,
    PART_MAC_OUT,
    PART_TX,
    PART_RX,
    PART_PCIE_CQ,
    PART_PCIE_RD,
    PART_PCIE_WR,
    PART_PCIE_RQ,
    PART_CTL_REGS,
    PART_CTL_DOORBELL,
    PART_CTL_RQ_MERGE,
    PART_CTL_CMDQ,
    PART_CTL_QP_MGR,
    PART_TX_SCHED,
    PART_TX_WQE_FETCH,
    PART_TX_SEG,
    PART_TX_READ,
    PART_TX_KEYS,
    PART_TX_GATHER,
    PART_TX_COMMIT,
    PART_TX_RESP,
    PART_TX_HEADERS,
    PART_TX_FRAME,
    PART_RX_PARSE,
    PART_RX_RESP,
    PART_RX_WQE,
    PART_RX_PLACE,
    PART_RX_ATOMIC,
    PART_RX_CMPL,
    PART_ETH_REGS,
    PART_ETH_TRANSMIT,
    PART_ETH_RECEIVE,
    PART_ETH_COMPLETIONS,
    PART_RESET,
    PART_PCIE_IRQ,
    PART_PCIE_RSP,
    PART_CTL_FENCE,
    PART_CTL_COMPLETIONS,
    PART_CTL_PORT_EVENT,
    PART_CTL_MCAST,
    PART_RX_MCAST,
    PART_RX_SRQ,
    PART_RX_SRQ_IDX,
    PART_PCIE_DM,
    PART_PCIE_DM_RSP,
    PART_QP_CNT,
    PART_N
  } part_e;

endpackage
/* verilator lint_on UNUSEDPARAM */
