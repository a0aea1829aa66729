// SPDX-License-Identifier: Apache-2.0
// The responder's ATOMICs: compare and swap, fetch and add on 8 aligned bytes of host memory, little-endian. It also executes
// FLUSH: it reads the 8 bytes around an address. When the read completion is here, all writes before the read are visible.
//
//  ended    an accepted request has left; in the order of acceptance
//  in_*     from placement, in order, address translated and checked. in_ready is 0 while a failure is being reported.
//  rd_*     DMA reads of 8 bytes, up to ENTRIES under way; wr_* DMA writes of 8 bytes
//  rsp_*    answers, in the order of acceptance, each after its write has been accepted. A FLUSH is answered by a READ
//           response of 0 bytes
//  err_*    a DMA read failed and the QP goes to ERR. The answer is a NAK; nothing is written or stored, and later ATOMICs of
//           the QP that are already here are dropped
//  chk_*    has the QP chk_qpn an ATOMIC here? From registers. busy: 1 from the cycle after acceptance until its write is
//           accepted and its answer taken. writes: 1 until its write is accepted, or it is known that it will not write
//  rst_*    forget the QP: its stored results, and its requests that have not begun to write
//
// Up to ENTRIES ATOMICs wait in a ring. Their operands are prefetched, in order. They are executed in order, in 5 cycles each
// once the operand is there. A read does not pass a write that was accepted before it (urdma_dma_rd), so only addresses in
// the ring can conflict. If an older ATOMIC in the ring has still to write the same address, the younger one does not read:
// it takes the older one's result. At most CHAIN do so in a row; the next one waits until their writes are accepted and reads
// again. So even under a stream of ATOMICs on one word, writes by others to that word (a holder that clears a lock by a
// WRITE) are still seen. A compare and swap that does not match writes nothing.
//
// The last 2**RDA_W results of each QP are kept with their PSNs. A repeated request (dup) is answered from them in its turn;
// without a stored result it gets no answer.

`resetall
`default_nettype none

module urdma_rx_atomic
  import urdma_pkg::*, urdma_rx_pkg::*, urdma_trace_pkg::*;
#(
  // log2 of the number of ATOMICs in the ring
  parameter int ENTRY_W = 4,
  // consecutive ATOMICs on one address that do not read
  parameter int CHAIN = 7
) (
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,
  output      logic             busy,
  output      logic             ended,

  input  wire logic             in_valid,
  input  wire atm_t             in,
  output      logic             in_ready,

  output      logic             rd_req_valid,
  output      dma_rd_req_t      rd_req,
  input  wire logic             rd_req_ready,
  input  wire logic             rd_rsp_valid,
  /* verilator lint_off UNUSEDSIGNAL */  // 8 bytes of a beat
  input  wire dma_rd_rsp_t      rd_rsp,
  /* verilator lint_on UNUSEDSIGNAL */

  output      logic             wr_valid,
  output      dma_wr_t          wr,
  input  wire logic             wr_ready,

  output      logic             rsp_valid,
  output      ack_req_t         rsp,
  input  wire logic             rsp_ready,

  output      logic             err_valid,
  output      qp_err_t          err,
  input  wire logic             err_ready,

  input  wire logic [QPN_W-1:0] chk_qpn,
  output      logic             chk_busy,
  output      logic             chk_writes,

  input  wire logic             rst_valid,
  input  wire logic [QPN_W-1:0] rst_qpn,

  output      logic             trace_mute_valid,
  output      tr_mute_t         trace_mute
);

  localparam int N = 1 << ENTRY_W;
  localparam int CHAIN_W = $clog2(CHAIN + 1);

  // ---- the ring ---------------------------------------------------------------------------------------------
  typedef logic [ENTRY_W-1:0] idx_t;

  atm_t ent_mem [N];
  idx_t dep_mem [N];                 // fwd: the entry whose result it takes; wait: the entry whose write it reads after
  logic [CHAIN_W-1:0] chain_mem [N];
  logic [63:0] val_mem [N];          // operand read
  logic [63:0] res_mem [N];          // memory contents when the entry is done
  logic [N-1:0] used_reg;            // accepted, answer not taken
  logic [N-1:0] live_reg;            // may still write
  logic [N-1:0] newest_reg;          // with live: the youngest on its address
  logic [N-1:0] fwd_reg, wait_reg;
  logic [N-1:0] dead_reg;            // changes nothing, gets no answer
  logic [N-1:0] got_reg, bad_reg;    // operand is here; its read failed
  logic [N-1:0] fail_reg;            // the memory contents are unknown
  idx_t head_reg, tail_reg, ask_reg; // next to execute, next to accept, next to read
  logic [ENTRY_W:0] count_reg, ask_count_reg;
  logic take, retire, finish, kill;

  assign take = in_valid && in_ready;
  assign busy = count_reg != '0;
  assign ended = retire;

  // the youngest entry on this address that will write in a later cycle
  logic match, match_chain;
  idx_t match_idx;
  always_comb begin
    match = 1'b0;
    match_idx = '0;
    if (in_valid && !in.dup && !in.flush && count_reg != '0) begin
      for (int i = 0; i < N; i++) begin
        if (live_reg[i] && newest_reg[i] && ent_mem[i].addr[63:3] == in.addr[63:3] && !(finish && head_reg == idx_t'(i))) begin
          match = 1'b1;
          match_idx = idx_t'(i);
        end
      end
    end
    match_chain = match && chain_mem[match_idx] != CHAIN_W'(CHAIN);
  end

  always_comb begin
    chk_busy = 1'b0;
    chk_writes = 1'b0;
    if (count_reg != '0) begin
      for (int i = 0; i < N; i++) begin
        if (used_reg[i] && ent_mem[i].qpn == chk_qpn) begin
          chk_busy = 1'b1;
          if (live_reg[i]) chk_writes = 1'b1;
        end
      end
    end
  end

  // ---- reads, in order --------------------------------------------------------------------------------------
  logic ask_here, ask_next, read_owed;
  idx_t read_idx;

  assign ask_here = ask_count_reg != '0;
  assign rd_req_valid = ask_here && !ent_mem[ask_reg].dup && !fwd_reg[ask_reg] && !wait_reg[ask_reg];
  assign rd_req = '{addr: {ent_mem[ask_reg].addr[63:3], 3'd0}, len: 13'd8};
  assign ask_next = ask_here && (ent_mem[ask_reg].dup || fwd_reg[ask_reg] || (rd_req_valid && rd_req_ready));

  urdma_fifo #(.WIDTH(ENTRY_W), .DEPTH(N)) read_fifo (
    .clk, .rst,
    .in_valid(rd_req_valid && rd_req_ready), .in_ready(), .in_data(ask_reg),
    .out_valid(read_owed), .out_ready(rd_rsp_valid), .out_data(read_idx), .count()
  );

  // ---- stored results ---------------------------------------------------------------------------------------
  typedef struct packed {
    logic [RDA_W-1:0] wr;      // where the next one is stored
    logic [RDA_W:0]   count;   // results stored
  } ring_st_t;

  typedef struct packed {
    logic [23:0] psn;
    logic [63:0] value;
  } stored_t;

  logic [QPN_W:0] init_reg;
  logic st_rd, st_wr;
  ring_st_t st, st_next;
  stored_t found;
  logic find_rd;
  logic [RDA_W-1:0] find_idx;

  atm_t x;
  logic x_here;
  assign x = ent_mem[head_reg];
  assign x_here = count_reg != '0;

  assign init_done = init_reg[QPN_W];

  urdma_ram_sdp #(.WIDTH($bits(ring_st_t)), .DEPTH(1 << QPN_W)) st_ram (
    .clk,
    .wr_en(!init_done || rst_valid || st_wr),
    .wr_addr(!init_done ? init_reg[QPN_W-1:0] : rst_valid ? rst_qpn : x.qpn),
    .wr_data(!init_done || rst_valid ? '0 : st_next),
    .rd_en(st_rd), .rd_addr(x.qpn), .rd_data(st)
  );

  logic [63:0] orig_reg, new_reg;

  urdma_ram_sdp #(.WIDTH($bits(stored_t)), .DEPTH(1 << (QPN_W + RDA_W))) result_ram (
    .clk,
    .wr_en(st_wr), .wr_addr({x.qpn, st.wr}), .wr_data({x.psn, orig_reg}),
    .rd_en(find_rd), .rd_addr({x.qpn, find_idx}), .rd_data(found)
  );

  always_comb begin
    st_next.wr = st.wr + 1'b1;
    st_next.count = st.count[RDA_W] ? st.count : st.count + 1'b1;
  end

  // ---- execution, in order ----------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    X_IDLE,
    X_CALC,    // operand is here
    X_WRITE,
    X_STORE,
    X_ANSWER,
    X_NAK,
    X_FIND,    // dup: look for its PSN, newest first
    X_GONE     // no answer
  } state_e;

  state_e state_reg;
  logic ready, x_dead, equal, changed, find_pend_reg, hit, rsp_done_reg, bad_op_reg;
  logic [RDA_W:0] find_reg;  // results looked up so far

  // an entry with fwd comes after the one whose result it takes, so that one is done
  assign ready = x.dup || fwd_reg[head_reg] || got_reg[head_reg];
  assign x_dead = dead_reg[head_reg] || (rst_valid && rst_qpn == x.qpn);
  assign equal = orig_reg == x.compare;
  assign changed = x.fetch_add || equal;

  assign st_rd = state_reg == X_IDLE && x_here && ready;
  assign st_wr = state_reg == X_STORE && !x_dead && !rst_valid;
  assign find_rd = state_reg == X_FIND && find_reg != st.count;
  assign find_idx = st.wr - 1'b1 - find_reg[RDA_W-1:0];
  assign hit = find_pend_reg && found.psn == x.psn;

  // a failed operand; it does not matter if the entry is dead
  assign kill = state_reg == X_CALC && bad_op_reg && !x_dead;
  // from the next cycle on, memory holds what this entry leaves there
  assign finish = (state_reg == X_CALC && (bad_op_reg || x_dead || !changed)) || (wr_valid && wr_ready);
  assign retire = state_reg == X_GONE || (state_reg == X_ANSWER && rsp_ready)
                  || (err_valid && err_ready);

  assign in_ready = init_done && !count_reg[ENTRY_W] && state_reg != X_NAK;

  assign wr_valid = state_reg == X_WRITE;
  assign wr = '{addr: {x.addr[63:3], 3'd0}, len: 13'd8, data: {448'd0, new_reg}, last: 1'b1};

  assign rsp_valid = state_reg == X_ANSWER || (state_reg == X_NAK && !rsp_done_reg);
  always_comb begin
    rsp = '0;
    rsp.kind = state_reg == X_NAK ? RSP_ACK : x.flush ? RSP_READ : RSP_ATOMIC;
    rsp.dup = x.dup;
    rsp.qpn = x.qpn;
    rsp.psn = x.psn;
    rsp.msn = state_reg == X_NAK ? x.msn - 24'd1 : x.msn;  // a failed request is not completed
    rsp.syndrome = state_reg == X_NAK ? SYN_NAK_OP : SYN_ACK;
    if (state_reg != X_NAK && !x.flush) rsp.va = orig_reg;
  end
  // After the NAK: urdma_tx_resp still sends the answers before it, although the QP is in ERR by then.
  assign err_valid = state_reg == X_NAK && rsp_done_reg;
  assign err = '{qpn: x.qpn, only_event: 1'b0, event_type: 8'(urdma_hw_pkg::URDMA_EV_QP_FATAL)};

  always_ff @(posedge clk) begin
    if (st_rd) begin
      orig_reg <= fwd_reg[head_reg] ? res_mem[dep_mem[head_reg]] : val_mem[head_reg];
      bad_op_reg <= !x.dup && (fwd_reg[head_reg] ? fail_reg[dep_mem[head_reg]] : bad_reg[head_reg]);
    end
    if (hit) orig_reg <= found.value;
    if (state_reg == X_CALC) begin
      new_reg <= x.fetch_add ? orig_reg + x.swap_add : x.swap_add;
      fail_reg[head_reg] <= bad_op_reg;
      res_mem[head_reg] <= orig_reg;
    end
    if (wr_valid && wr_ready) res_mem[head_reg] <= new_reg;

    if (take) begin
      ent_mem[tail_reg] <= in;
      dep_mem[tail_reg] <= match_idx;
      chain_mem[tail_reg] <= match_chain ? chain_mem[match_idx] + 1'b1 : '0;
    end
    if (rd_rsp_valid) val_mem[read_idx] <= rd_rsp.data[63:0];

    if (rst) begin
      state_reg <= X_IDLE;
      used_reg <= '0;
      live_reg <= '0;
      newest_reg <= '0;
      fwd_reg <= '0;
      wait_reg <= '0;
      dead_reg <= '0;
      got_reg <= '0;
      bad_reg <= '0;
      head_reg <= '0;
      tail_reg <= '0;
      ask_reg <= '0;
      count_reg <= '0;
      ask_count_reg <= '0;
      init_reg <= '0;
      find_pend_reg <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      count_reg <= count_reg + (ENTRY_W + 1)'(take) - (ENTRY_W + 1)'(retire);
      ask_count_reg <= ask_count_reg + (ENTRY_W + 1)'(take) - (ENTRY_W + 1)'(ask_next);
      if (ask_next) ask_reg <= ask_reg + 1'b1;

      if (rd_rsp_valid) begin
        got_reg[read_idx] <= 1'b1;
        bad_reg[read_idx] <= rd_rsp.err;
      end
      if (finish) begin
        live_reg[head_reg] <= 1'b0;
        for (int i = 0; i < N; i++) if (dep_mem[i] == head_reg) wait_reg[i] <= 1'b0;
      end
      if (rst_valid || kill) begin
        for (int i = 0; i < N; i++) begin
          if ((rst_valid && ent_mem[i].qpn == rst_qpn) || (kill && ent_mem[i].qpn == x.qpn && idx_t'(i) != head_reg))
            dead_reg[i] <= 1'b1;
        end
      end
      if (take) begin
        tail_reg <= tail_reg + 1'b1;
        used_reg[tail_reg] <= 1'b1;
        live_reg[tail_reg] <= !in.dup && !in.flush;
        newest_reg[tail_reg] <= 1'b1;
        if (match) newest_reg[match_idx] <= 1'b0;
        fwd_reg[tail_reg] <= match_chain;
        wait_reg[tail_reg] <= match && !match_chain;
        dead_reg[tail_reg] <= (rst_valid && in.qpn == rst_qpn) || (kill && in.qpn == x.qpn);
        got_reg[tail_reg] <= 1'b0;
      end
      if (retire) begin
        head_reg <= head_reg + 1'b1;
        used_reg[head_reg] <= 1'b0;
      end

      unique case (state_reg)
        X_IDLE: begin
          find_reg <= '0;
          rsp_done_reg <= 1'b0;
          if (st_rd) state_reg <= x.dup ? X_FIND : X_CALC;
        end
        X_CALC:
          if (x_dead) state_reg <= X_GONE;
          else if (bad_op_reg) state_reg <= X_NAK;
          else state_reg <= x.flush ? X_ANSWER : changed ? X_WRITE : X_STORE;
        X_WRITE: if (wr_ready) state_reg <= X_STORE;
        X_STORE:
          // memory has changed: if the QP was forgotten meanwhile, no answer is sent and none is stored
          if (x_dead) state_reg <= X_GONE;
          else if (!rst_valid) state_reg <= X_ANSWER;
        X_NAK: begin
          if (rsp_ready) rsp_done_reg <= 1'b1;
          if (retire) state_reg <= X_IDLE;
        end
        X_FIND: begin
          if (find_rd) find_reg <= find_reg + 1'b1;
          find_pend_reg <= find_rd && !hit;
          if (x_dead) state_reg <= X_GONE;
          else if (hit) state_reg <= X_ANSWER;
          else if (!find_rd) state_reg <= X_GONE;
        end
        default: if (retire) state_reg <= X_IDLE;  // X_ANSWER, X_GONE
      endcase
      if (state_reg != X_FIND) find_pend_reg <= 1'b0;
    end
  end

  assign trace_mute_valid = retire && state_reg != X_ANSWER;
  assign trace_mute = '{qpn: x.qpn, psn: x.psn,
                        why: state_reg == X_NAK ? TRM_NAK : (x.dup && !x_dead) ? TRM_OLD : TRM_ENDED};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rd_rsp_valid) a_rsp: assert (read_owed && rd_rsp.last)
      else $error("%m: DMA answer that nobody asked for");
  always_ff @(posedge clk)
    if (!rst && in_valid && !in.dup && !in.flush) a_align: assert (in.addr[2:0] == '0)
      else $error("%m: address is not a multiple of 8");
`endif

endmodule

`resetall
