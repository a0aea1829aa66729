// SPDX-License-Identifier: Apache-2.0
// Types and sizes shared by the blocks of the NIC. See docs/rtl-interfaces.md for the rules of
// each port; layouts seen by software are in urdma_hw_pkg, generated from driver/urdma_hw.h.
package urdma_pkg;

  // ---- sizes -----------------------------------------------------------------------------------
  localparam int QPN_W = 12;       // queue pairs: 2**QPN_W
  localparam int CQN_W = 12;       // completion queues
  localparam int EQN_W = 6;        // event queues, EQ 0 takes commands and asynchronous events
  localparam int MRI_W = 14;       // memory regions (index part of a key)
  localparam int PD_W = 12;        // protection domains
  localparam int DBP_W = 10;       // 4 KB doorbell pages in BAR2
  localparam int GID_W = 5;        // GID table entries
  localparam int VEC_W = 6;        // MSI-X vectors
  localparam int INFL_W = 7;       // log2 of messages a QP may have sent and not had acknowledged

  // ---- PCIe side: what rtl/pcie offers the rest ------------------------------------------------
  // DMA read. A client holds valid until ready. Length 1..4096 bytes, any alignment; need not respect
  // 4 KB or maximum-read-request boundaries (the engine splits). Responses come back in the order in which
  // requests were granted over ALL clients, ceil(len/64) beats each, first byte in lane 0 of the first beat,
  // dense; there is NO back-pressure on responses: reserve space before you ask.
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
  localparam int RD_N = 6;

  // DMA write. valid/ready per beat; addr and len count on the first beat of a request. Length 1..4096 bytes,
  // data dense from lane 0, ceil(len/64) beats, last on the last one. Requests reach the link in the order
  // in which their last beats were accepted; a request, once begun by a client, is not interleaved.
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
  localparam int WR_N = 4;

  // Register bus (BAR0), one 64-bit word an access. Reads are answered in order.
  typedef struct packed {
    logic        write;
    logic [15:0] addr;    // byte address in BAR0, 8-byte aligned
    logic [63:0] wdata;
    logic [7:0]  strb;
  } reg_req_t;

  // Doorbell (BAR2): an aligned 8-byte write. Others are dropped and counted by rtl/pcie.
  typedef struct packed {
    logic [DBP_W-1:0] page;
    logic [11:0]      offset;  // in the page, 8-byte aligned
    logic [63:0]      data;
  } db_t;

endpackage
