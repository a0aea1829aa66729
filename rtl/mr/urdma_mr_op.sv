// SPDX-License-Identifier: Apache-2.0
// Operations on memory regions and windows (mr_op_t): one at a time, clients in turn. It is the only writer of the contexts.
//
//   read the key's context -> read the other one (the region of a window) if there is one -> compare -> verdict
//   -> write one or two contexts -> answer
//
// 7 cycles from the start of an operation to its answer with one context, 11 with two; a refusal writes nothing and takes
// as long. QP_END first finds its window in urdma_mr_list: 13 cycles with a window, 3 without. For lookups an operation is
// atomic: no request needs two contexts (a window holds a copy of its region's table), and lookups ignore the count of
// bound windows, which the second write changes.
//
// BIND of a bound type 1 window unbinds it first, in a pass of its own, and then begins again: 21 cycles, or 17 for a
// BIND to no range. If the second pass refuses, the window stays unbound.
//
// REG invalidates the cached page table entries of FAST regions and windows when it writes, because the table may be at the
// address of an older one. Requests accepted after the answer enter the caches later.

`resetall
`default_nettype none

module urdma_mr_op
  import urdma_pkg::*, urdma_mr_pkg::*, urdma_hw_pkg::*;
(
  input  wire logic                clk,
  input  wire logic                rst,
  input  wire logic                enable,        // contexts are cleared
  output      logic                busy,

  input  wire logic   [MROC_N-1:0] mro_valid,
  input  wire mr_op_t [MROC_N-1:0] mro,
  output      logic   [MROC_N-1:0] mro_ready,
  output      logic   [MROC_N-1:0] mro_rsp_valid,
  output      mro_status_e         mro_rsp,

  output      logic                rd_valid,      // always taken
  output      logic [MRI_W-1:0]    rd_idx,
  input  wire logic                rsp_valid,
  input  wire mr_ctx_t             rsp_ctx,

  output      logic                wr_valid,
  output      logic [MRI_W-1:0]    wr_idx,
  output      mr_ctx_t             wr_ctx,

  output      logic                flush,         // of the page table caches, a pulse

  // the windows bound to each QP, see urdma_mr_list
  output      logic                list_insert,
  output      logic                list_remove,
  output      logic                list_head_req,
  output      logic [QPN_W-1:0]    list_qpn,
  output      logic [MRI_W-1:0]    list_idx,
  input  wire logic                list_head_valid,
  input  wire logic                list_head_some,
  input  wire logic [MRI_W-1:0]    list_head_idx
);

  typedef enum logic [3:0] {
    S_IDLE,
    S_HEAD,        // QP_END: the newest window of the QP
    S_READ,        // the key's context
    S_WAIT,
    S_READ2,       // the region's
    S_WAIT2,
    S_COMPARE,
    S_VERDICT,
    S_WRITE,
    S_WRITE2,
    S_ANSWER
  } state_e;

  state_e state_reg;
  logic [MROC_N-1:0] grant, client_reg;
  logic grant_valid, take;
  mr_op_t grant_op, op_reg;
  mr_ctx_t own_reg, par_reg;   // the key's context; the region of a window

  assign take = state_reg == S_IDLE && enable && grant_valid;
  assign mro_ready = take ? grant : '0;
  assign busy = state_reg != S_IDLE;

  urdma_arb_rr #(.N(MROC_N)) arb (
    .clk, .rst, .req(mro_valid), .advance(take), .grant, .grant_idx(), .grant_valid
  );

  always_comb begin
    grant_op = '0;
    for (int i = 0; i < MROC_N; i++) if (grant[i]) grant_op = mro[i];
  end

  // the region concerned: that of BIND, or the one that a window is bound to
  logic is_bind, is_inv, is_end, unbind, second;
  logic [MRI_W-1:0] own_idx, par_idx;

  assign is_bind = op_reg.op == MRO_BIND;
  assign is_inv = op_reg.op == MRO_INV_LOCAL || op_reg.op == MRO_INV_REMOTE;
  assign is_end = op_reg.op == MRO_QP_END;
  assign own_idx = op_reg.key[8 +: MRI_W];

  function automatic logic is_window(input logic [1:0] kind);
    return kind == 2'(URDMA_MRK_WINDOW) || kind == 2'(URDMA_MRK_WINDOW_1);
  endfunction

  // a bound window that its region counts
  logic rsp_bound, own_bound_reg, own_1, again, nothing;
  assign rsp_bound = rsp_ctx.valid && rsp_ctx.usable && is_window(rsp_ctx.kind);
  assign own_1 = (state_reg == S_WAIT ? rsp_ctx.kind : own_reg.kind) == 2'(URDMA_MRK_WINDOW_1);
  assign again = is_bind && own_1;  // BIND of a window that is bound unbinds it
  assign unbind = (state_reg == S_WAIT ? rsp_bound : own_bound_reg)
                  && (again || is_end || op_reg.op == MRO_DESTROY || (is_inv && !own_1));
  assign nothing = again && !unbind && op_reg.len == '0;  // bind to no range: the window stays unbound
  assign second = unbind || (is_bind && !nothing);
  assign par_idx = unbind ? own_reg.parent : op_reg.lkey[8 +: MRI_W];

  assign rd_valid = state_reg == S_READ || state_reg == S_READ2;
  assign rd_idx = state_reg == S_READ2 ? par_idx : own_idx;

  // ---- comparisons -------------------------------------------------------------------------------------------
  logic own_here_reg;    // the index exists
  logic own_variant_reg;
  logic own_pd_reg;
  logic own_qpn_reg;
  logic par_good_reg;    // a region that windows may be bound to
  logic par_pd_reg;
  logic change_reg;      // the rights allow memory to be changed
  logic below_reg, wrap_reg, empty_reg, format_bad_reg;
  logic [63:0] rel_reg;
  logic [63:0] pt_va_reg;      // of the context to be written
  logic [30:0] in_page;        // va in its page, which has at most 2**31 bytes

  always_comb for (int i = 0; i < 31; i++) in_page[i] = op_reg.va[i] && 6'(i) < op_reg.pt.page_shift;

  always_ff @(posedge clk) begin
    if (state_reg == S_COMPARE) begin
      own_here_reg <= own_reg.valid && op_reg.key[31:8+MRI_W] == '0;
      own_variant_reg <= own_reg.variant == op_reg.key[7:0];
      own_pd_reg <= own_reg.pd == op_reg.pd;
      own_qpn_reg <= own_reg.qpn == op_reg.qpn;
      par_good_reg <= par_reg.valid && par_reg.usable && !is_window(par_reg.kind) && !par_reg.all
                      && op_reg.lkey[31:8+MRI_W] == '0 && par_reg.variant == op_reg.lkey[7:0];
      par_pd_reg <= par_reg.pd == op_reg.pd;
      change_reg <= (op_reg.acc & ACC_REMOTE_CHANGE) != '0;
      below_reg <= op_reg.va < par_reg.va;
      rel_reg <= op_reg.va - par_reg.va;
      if (is_bind) pt_va_reg <= par_reg.pt_va - (op_reg.zero_based ? op_reg.va : '0);
      else pt_va_reg <= (op_reg.zero_based ? '0 : op_reg.va) - 64'(in_page);
      // the address after the last byte may be 2**64
      wrap_reg <= op_reg.len != '0 && op_reg.va + (op_reg.len - 64'd1) < op_reg.va;
      empty_reg <= op_reg.len == '0;
      format_bad_reg <= op_reg.pt.page_shift < 6'd12 || op_reg.pt.page_shift > 6'd31 || op_reg.pt.levels == 2'd3;
    end
  end

  // ---- verdict -----------------------------------------------------------------------------------------------
  mro_status_e verdict, verdict_reg;
  logic good, ended_reg;       // ended: a binding has ended in the previous pass

  always_comb begin
    verdict = MRO_OK;
    unique case (op_reg.op)
      MRO_CREATE:
        if (op_reg.key[31:8+MRI_W] != '0 || own_here_reg) verdict = MRO_BAD_KEY;
      MRO_DESTROY:
        // by index: software changes the variant with REG and BIND, and the command queue does not track it
        if (!own_here_reg) verdict = MRO_BAD_KEY;
        else if (own_reg.bound != '0) verdict = MRO_BUSY;
      MRO_REG:
        if (!own_here_reg || own_reg.kind != 2'(URDMA_MRK_FAST) || own_reg.usable) verdict = MRO_BAD_KEY;
        else if (!own_pd_reg) verdict = MRO_BAD_PD;
        else if (wrap_reg || format_bad_reg) verdict = MRO_BAD_RANGE;
        else if (change_reg && (op_reg.acc & ACC_LOCAL_WRITE) == '0) verdict = MRO_BAD_ACCESS;
      MRO_INV_LOCAL, MRO_INV_REMOTE:
        if (!own_here_reg || !own_variant_reg || !own_reg.usable || own_1 || own_reg.kind == 2'(URDMA_MRK_REGION))
          verdict = MRO_BAD_KEY;
        else if (!own_pd_reg || (is_window(own_reg.kind) && !own_qpn_reg)) verdict = MRO_BAD_PD;
        else if (op_reg.op == MRO_INV_REMOTE && !is_window(own_reg.kind) && (own_reg.acc & ACC_REMOTE) == '0)
          verdict = MRO_BAD_ACCESS;
        else if (own_reg.bound != '0) verdict = MRO_BUSY;
      MRO_BIND:
        if (!own_here_reg || !is_window(own_reg.kind)) verdict = MRO_BAD_KEY;
        else if (unbind || nothing) verdict = own_pd_reg ? MRO_OK : MRO_BAD_PD;
        else if (own_reg.usable || !par_good_reg) verdict = MRO_BAD_KEY;
        else if (!own_pd_reg || !par_pd_reg) verdict = MRO_BAD_PD;
        // a type 2 window cannot be bound to no range (IBA volume 1, o10-37.2.40)
        else if (empty_reg || below_reg || rel_reg > par_reg.len || par_reg.len - rel_reg < op_reg.len)
          verdict = MRO_BAD_RANGE;
        else if ((par_reg.acc & ACC_MW_BIND) == '0 || (change_reg && (par_reg.acc & ACC_LOCAL_WRITE) == '0))
          verdict = MRO_BAD_ACCESS;
      MRO_QP_END: ;  // the list holds only windows that are bound
      default: verdict = MRO_BAD_KEY;
    endcase
  end

  // ---- new contexts ------------------------------------------------------------------------------------------
  mr_ctx_t own_next, par_next;
  logic [63:0] start;
  assign start = op_reg.zero_based ? '0 : op_reg.va;

  always_comb begin
    own_next = own_reg;
    unique case (op_reg.op)
      MRO_CREATE: begin
        own_next = '0;
        own_next.valid = 1'b1;
        own_next.kind = op_reg.kind;
        own_next.variant = op_reg.key[7:0];
        own_next.pd = op_reg.pd;
        if (op_reg.kind == 2'(URDMA_MRK_REGION)) begin
          own_next.usable = 1'b1;
          own_next.acc = op_reg.acc;
          own_next.all = op_reg.all;
          own_next.va = start;
          own_next.len = op_reg.len;
          if (!op_reg.all) begin  // else addresses are bus addresses: the table begins at 0 and has no levels
            own_next.pt_va = pt_va_reg;
            own_next.pt = op_reg.pt;
          end
        end
      end
      MRO_DESTROY: own_next = '0;
      MRO_INV_LOCAL, MRO_INV_REMOTE, MRO_QP_END: own_next.usable = 1'b0;
      default: if (unbind || nothing) begin
        own_next.usable = 1'b0;
      end else begin  // REG, BIND
        own_next.usable = 1'b1;
        own_next.variant = op_reg.key[7:0];
        own_next.va = start;
        own_next.len = op_reg.len;
        own_next.pt_va = pt_va_reg;
        if (is_bind) begin
          own_next.acc = op_reg.acc & ACC_REMOTE;
          own_next.qpn = op_reg.qpn;
          own_next.parent = par_idx;
          own_next.pt = par_reg.pt;
        end else begin
          own_next.acc = op_reg.acc;
          own_next.pt = op_reg.pt;
        end
      end
    endcase
    par_next = par_reg;
    par_next.bound = unbind ? par_reg.bound - 1'b1 : par_reg.bound + 1'b1;
  end

  assign good = verdict_reg == MRO_OK || verdict_reg == MRO_ENDED;
  assign wr_valid = (state_reg == S_WRITE || state_reg == S_WRITE2) && good;
  assign wr_idx = state_reg == S_WRITE2 ? par_idx : own_idx;
  assign wr_ctx = state_reg == S_WRITE2 ? par_next : own_next;
  assign flush = wr_valid && op_reg.op == MRO_REG;

  assign mro_rsp_valid = state_reg == S_ANSWER ? client_reg : '0;
  assign mro_rsp = verdict_reg;

  assign list_head_req = take && grant_op.op == MRO_QP_END;
  assign list_insert = state_reg == S_WRITE && wr_valid && is_bind && !own_1;
  assign list_remove = state_reg == S_WRITE && wr_valid && unbind && !own_1;
  assign list_qpn = list_head_req ? grant_op.qpn : is_bind ? op_reg.qpn : own_reg.qpn;
  assign list_idx = own_idx;

  always_ff @(posedge clk) begin
    if (take) begin
      op_reg <= grant_op;
      client_reg <= grant;
    end
    if (state_reg == S_HEAD && list_head_valid) op_reg.key[8 +: MRI_W] <= list_head_idx;
    if (state_reg == S_WAIT && rsp_valid) begin
      own_reg <= rsp_ctx;
      own_bound_reg <= rsp_bound;
    end
    if (state_reg == S_WAIT2 && rsp_valid) par_reg <= rsp_ctx;
    if (state_reg == S_HEAD) verdict_reg <= MRO_OK;
    if (state_reg == S_VERDICT) verdict_reg <= (verdict == MRO_OK && ended_reg) ? MRO_ENDED : verdict;
    if (take) ended_reg <= 1'b0;
    else if (state_reg == S_WRITE2 && is_bind && unbind) ended_reg <= good;
    // the answer after the writes: there may be more
    if (state_reg == S_WRITE2 && is_end) verdict_reg <= MRO_BUSY;

    if (rst) begin
      state_reg <= S_IDLE;
    end else begin
      unique case (state_reg)
        S_IDLE: if (take) state_reg <= list_head_req ? S_HEAD : S_READ;
        S_HEAD: if (list_head_valid) state_reg <= list_head_some ? S_READ : S_ANSWER;
        S_READ: state_reg <= S_WAIT;
        S_WAIT: if (rsp_valid) state_reg <= second ? S_READ2 : S_COMPARE;
        S_READ2: state_reg <= S_WAIT2;
        S_WAIT2: if (rsp_valid) state_reg <= S_COMPARE;
        S_COMPARE: state_reg <= S_VERDICT;
        S_VERDICT: state_reg <= S_WRITE;
        S_WRITE: state_reg <= second ? S_WRITE2 : S_ANSWER;
        S_WRITE2: state_reg <= (is_bind && unbind && good) ? S_READ : S_ANSWER;
        default: state_reg <= S_IDLE;  // S_ANSWER
      endcase
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && state_reg == S_VERDICT && is_end) a_end: assert (unbind && own_reg.qpn == op_reg.qpn)
      else $error("%m: the list of a QP holds a window that is not bound to it");
  always_ff @(posedge clk)
    if (!rst && state_reg == S_WRITE2 && wr_valid && unbind) a_count: assert (par_reg.valid && par_reg.bound != '0)
      else $error("%m: more windows unbound than were bound");
`endif

endmodule

`resetall
