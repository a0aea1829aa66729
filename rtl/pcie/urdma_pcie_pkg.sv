// SPDX-License-Identifier: Apache-2.0
// The user interface of the UltraScale+ integrated block (AMD PG213, 512 bit, dword-aligned, no straddling): descriptors,
// request types, error codes, and the types between the modules of this folder. Nothing outside rtl/pcie imports this
// package.
/* verilator lint_off UNUSEDPARAM */  // a package of constants: no user needs all of them
package urdma_pcie_pkg;

  // ---- request types of CQ and RQ descriptors --------------------------------------------------
  localparam logic [3:0] REQ_MEM_RD = 4'd0;
  localparam logic [3:0] REQ_MEM_WR = 4'd1;
  localparam logic [3:0] REQ_MEM_RD_LOCKED = 4'd7;
  localparam logic [3:0] REQ_FIRST_MSG = 4'd12;  // from here on messages: posted

  // ---- completion status (PCI Express Base Specification, 2.2.9) -------------------------------
  localparam logic [2:0] CPL_SC = 3'd0;  // successful
  localparam logic [2:0] CPL_UR = 3'd1;  // unsupported request
  localparam logic [2:0] CPL_CA = 3'd4;  // completer abort

  // ---- error codes of RC descriptors -----------------------------------------------------------
  localparam logic [3:0] RC_ERR_NONE = 4'd0;
  localparam logic [3:0] RC_ERR_BAD_TAG = 4'd6;   // no request with this tag is known to the block
  localparam logic [3:0] RC_ERR_TIMEOUT = 4'd9;   // the block's own completion time-out

  typedef struct packed {
    logic        rsvd127;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic [5:0]  bar_aperture;
    logic [2:0]  bar_id;
    logic [7:0]  target_fn;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        rsvd79;
    logic [3:0]  req_type;
    logic [10:0] dword_count;
    logic [61:0] addr;           // dword address
    logic [1:0]  at;
  } cq_desc_t;                   // 128 bits

  typedef struct packed {
    logic        force_ecrc;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic        requester_id_en;
    logic [15:0] completer_id;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        poisoned;
    logic [3:0]  req_type;
    logic [10:0] dword_count;
    logic [61:0] addr;           // dword address
    logic [1:0]  at;
  } rq_desc_t;                   // 128 bits

  typedef struct packed {
    logic        force_ecrc;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic        completer_id_en;
    logic [7:0]  completer_bus;
    logic [7:0]  target_fn;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        rsvd47;
    logic        poisoned;
    logic [2:0]  status;
    logic [10:0] dword_count;
    logic [1:0]  rsvd30;
    logic        locked;
    logic [12:0] byte_count;     // bytes still to come, with this completion
    logic [5:0]  rsvd10;
    logic [1:0]  at;
    logic        rsvd7;
    logic [6:0]  lower_addr;
  } cc_desc_t;                   // 96 bits

  typedef struct packed {
    logic        rsvd95;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic        rsvd88;
    logic [15:0] completer_id;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        rsvd47;
    logic        poisoned;
    logic [2:0]  status;
    logic [10:0] dword_count;
    logic        rsvd31;
    logic        req_completed;  // no more completions will come for this request
    logic        locked;
    logic [12:0] byte_count;     // bytes still to come, with this completion
    logic [3:0]  error_code;
    logic [11:0] lower_addr;
  } rc_desc_t;                   // 96 bits

  // A read request under way to RQ: one TLP, one beat.
  typedef struct packed {
    logic [61:0] addr;           // dword address
    logic [10:0] dword_count;
    logic [3:0]  first_be;
    logic [3:0]  last_be;
    logic [7:0]  tag;
  } rd_tlp_t;

  // A beat of a TLP under way to RQ, descriptor in band.
  typedef struct packed {
    logic [511:0] data;
    logic [3:0]   first_be;      // of the TLP, valid in its first beat
    logic [3:0]   last_be;
    logic [3:0]   last_dw;       // with last: number of the last valid dword of this beat
    logic         last;          // last beat of the TLP
    logic         req_end;       // with last: the last TLP of a DMA write request
  } rq_beat_t;

  // Dword enables of a beat whose last valid dword is n.
  function automatic logic [15:0] keep_upto(input logic [3:0] n);
    keep_upto = 16'hffff >> (4'd15 - n);
  endfunction

  // First and last byte enables of a transfer of n bytes (1 or more) from byte offset a of its first dword; only
  // the low bits of a + n count. single: it ends in the dword in which it starts.
  function automatic logic [3:0] be_from(input logic [1:0] a);
    be_from = 4'hf << a;
  endfunction
  function automatic logic [3:0] be_upto(input logic [1:0] end_off);  // end_off = (a + n) mod 4, 0 for a full dword
    case (end_off)
      2'd1: be_upto = 4'h1;
      2'd2: be_upto = 4'h3;
      2'd3: be_upto = 4'h7;
      default: be_upto = 4'hf;
    endcase
  endfunction

  // Byte rotation towards lane 0.
  function automatic logic [511:0] ror_bytes(input logic [511:0] d, input logic [5:0] n);
    logic [511:0] v;
    v = d;
    if (n[0]) v = {v[7:0], v[511:8]};
    if (n[1]) v = {v[15:0], v[511:16]};
    if (n[2]) v = {v[31:0], v[511:32]};
    if (n[3]) v = {v[63:0], v[511:64]};
    if (n[4]) v = {v[127:0], v[511:128]};
    if (n[5]) v = {v[255:0], v[511:256]};
    ror_bytes = v;
  endfunction

  // Mask of the byte lanes below n (0..64).
  function automatic logic [511:0] lanes_below(input logic [6:0] n);
    lanes_below = n[6] ? {512{1'b1}} : ~({512{1'b1}} << {n[5:0], 3'b000});
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
