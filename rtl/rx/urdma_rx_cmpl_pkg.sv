// SPDX-License-Identifier: Apache-2.0
// State that requester completion keeps for a QP, and the periods of its timers.
/* verilator lint_off UNUSEDPARAM */
package urdma_rx_cmpl_pkg;
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_trace_pkg::*;

  typedef enum logic [1:0] {T_NONE, T_ACK, T_RNR} timer_e;

  // Owner: urdma_rx_cmpl
  typedef struct packed {
    logic        active;           // from RTS on
    logic        err;
    logic        dead;             // a WQE completed in error: the rest is flushed
    logic        gap;              // a retry has begun, no progress since
    logic        restart;          // tx was sent back and may begin anew at any una since then; so may the responses of a READ
    logic        want;             // AK_RETRY is due when head reaches ack
    trace_cause_e cause;           // with want: its cause
    logic        watch;            // a turn has seen that an answer is due
    logic [7:0]  nak;              // error that waits for the entry at ack
    logic [2:0]  retries;          // used since the last progress
    logic [2:0]  rnrs;
    timer_e      tk;
    logic [63:0] deadline;
    logic [7:0]  rd_done;          // READs and ATOMICs completed
    logic [23:0] una;              // oldest PSN not acknowledged
    logic [23:0] first;            // first PSN of head's message
    logic [23:0] ack_first;        // first PSN of ack's message
    logic [15:0] head;             // oldest WQE not completed
    logic [15:0] ack;              // oldest WQE not acknowledged
  } st_t;

  // Owner of all below: urdma_rx_told. A WQE that tx has reported:
  typedef struct packed {
    logic [23:0] psn;
    logic [7:0]  opcode;
    logic        signaled;
    logic [7:0]  status;
    logic [31:0] len;
  } ent_t;

  // the end of a QP's table
  typedef struct packed {
    logic [15:0] idx;
    logic [23:0] psn;              // of the entry before
  } tail_t;

  // PSNs of the packets that are made
  typedef struct packed {
    logic [23:0] newest;
    logic [23:0] asked;            // the newest that asks for an answer
  } psns_t;

  // READs and ATOMICs that are placed, counted as st_t.rd_done; an error status ends the count
  typedef struct packed {
    logic [7:0]  cnt;
    logic [7:0]  status;
  } placed_t;

  // What a packet or kick means for its turn. Several bits may be set, but only one kind of acknowledgement.
  typedef struct packed {
    logic ack;
    logic nak;
    logic rnr;
    logic resp;
    logic expired;                 // the timer has expired
  } says_t;

  // A turn on its way from the walk to its end.
  typedef struct packed {
    found_t      it;
    st_t         st;
    logic        armed;            // the QP's timer was armed
    logic [23:0] asked;            // as psns_t
    logic        fresh;            // the table has grown since the tail was read: by the message of PSN fresh_psn, and others
    logic [23:0] fresh_psn;
    logic        ghost;            // a packet that answers nothing; for the lane
  } run_t;

  // a CQE of the send queue
  typedef struct packed {
    logic [CQN_W-1:0] cqn;
    logic [QPN_W-1:0] qpn;
    logic [7:0]       opcode;
    logic [7:0]       status;
    logic [15:0]      wqe;
    logic [31:0]      len;
  } sq_cqe_t;

  // results of a turn, for its end
  typedef struct packed {
    logic [INFL_W:0] cqes;         // CQEs that it has made; they wait in urdma_rx_cqe_gate
    logic        changed;          // something completed, or is acknowledged
    logic        failed;           // it moves the QP to ERR
    logic        look;             // another turn is needed
    logic        hold;             // tx must wait
    logic        rnr;              // set the RNR timer
    logic        rearm;            // restart the ACK timer
    logic        hit;              // a packet that is counted
    rr_t         rr;
  } did_t;

  // what urdma_rx_told writes for the QP meanwhile
  typedef struct packed {
    logic        sent;             // a message without a status
    logic [23:0] psn;
    logic        made;             // new value of psns_t.asked
    logic [23:0] asked;
  } news_t;

  function automatic run_t follow(input run_t r, input news_t n);
    follow = r;
    if (n.made) follow.asked = n.asked;
    if (n.sent && !r.fresh) begin
      follow.fresh = 1'b1;
      follow.fresh_psn = n.psn;
    end
  endfunction

  // a is before b; the PSNs are less than half of their range apart
  function automatic logic psn_before(input logic [23:0] a, input logic [23:0] b);
    return 1'((a - b) >> 23);
  endfunction

  // bits 7:5 of an AETH's syndrome hold a reserved kind (IBA volume 1, 9.7.5.2.1)
  function automatic logic aeth_reserved(input logic [2:0] kind);
    return kind != 3'b000 && kind != 3'b001 && kind != 3'b011;
  endfunction

  // answered by READ responses or an ATOMIC acknowledge
  function automatic logic is_read(input logic [7:0] opcode);
    return opcode == 8'(urdma_hw_pkg::URDMA_WR_READ) || opcode == 8'(urdma_hw_pkg::URDMA_WR_ATOMIC_CS)
        || opcode == 8'(urdma_hw_pkg::URDMA_WR_ATOMIC_FA) || opcode == 8'(urdma_hw_pkg::URDMA_WR_FLUSH)
        || opcode == 8'(urdma_hw_pkg::URDMA_WR_ATOMIC_WRITE);
  endfunction

  function automatic logic is_atomic(input logic [7:0] opcode);
    return opcode == 8'(urdma_hw_pkg::URDMA_WR_ATOMIC_CS) || opcode == 8'(urdma_hw_pkg::URDMA_WR_ATOMIC_FA);
  endfunction

  // IBA volume 1, 9.7.5.2.8: 10 us are 2500 cycles; code 0 is the longest time
  function automatic logic [63:0] rnr_cycles(input logic [4:0] code);
    logic [16:0] units;
    if (code == 5'd0) units = 17'd65536;
    else if (code == 5'd1) units = 17'd1;
    else if (code[0]) units = 17'd3 << ((code - 5'd3) >> 1);
    else units = 17'd1 << (code >> 1);
    return 64'(units) * 64'd2500;
  endfunction

  // IBA volume 1, 9.7.6.1.3: T = 1024 * 2**timeout cycles at least, 4 T at most, since the packet was sent. The timer starts
  // when the packet is scheduled to be sent (again). The way to the wire, including reads of the WQE and the payload, may
  // take 2 T but no more than 32768 cycles.
  function automatic logic [63:0] ack_cycles(input logic [4:0] timeout);
    logic [63:0] t;
    t = 64'd1024 << timeout;
    return t + (timeout < 5'd4 ? t << 1 : 64'd32768);
  endfunction

  function automatic logic new_life(input qpc_op_e op);
    return op == QPC_RESET || op == QPC_SQ_PSN;
  endfunction

  // a control message, applied to the state
  function automatic st_t control(input st_t s, input qpc_op_e op, input logic [23:0] psn);
    control = s;
    case (op)
      QPC_RESET: control = '0;
      QPC_SQ_PSN: begin
        control.active = 1'b1;
        control.una = psn;
        control.first = psn;
        control.ack_first = psn;
        control.rd_done = '0;
      end
      QPC_ERR: control.err = 1'b1;
      default: ;
    endcase
  endfunction

  // the same for a turn under way
  function automatic run_t control_run(input run_t r, input qpc_op_e op, input logic [23:0] psn);
    control_run = r;
    control_run.st = control(r.st, op, psn);
    if (new_life(op)) begin
      control_run.asked = psn - 24'd1;
      control_run.fresh = 1'b0;
    end
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
