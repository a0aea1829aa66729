// SPDX-License-Identifier: Apache-2.0
// The meaning of a BTH opcode: decoded once, where a packet enters, and carried with the packet.
/* verilator lint_off UNUSEDPARAM */
package urdma_opcode_pkg;

  // Transport services, by the upper three bits of the opcode
  typedef enum logic [2:0] {
    XP_RC,
    XP_UC,
    XP_UD,
    XP_XRC,
    XP_OTHER
  } transport_e;

  typedef struct packed {
    transport_e transport;
    logic       valid;           // the transport has the opcode; if not, all fields below are 0
    logic       send;
    logic       write;
    logic       read;            // READ request, FLUSH, ATOMIC WRITE: requests answered by READ responses
    logic       flush;           // with read: FLUSH
    logic       awrite;          // with read: ATOMIC WRITE
    logic       atomic;          // ATOMIC request
    logic       fetch_add;       // with atomic: no compare and swap
    logic       ack;
    logic       response;        // READ response, ATOMIC acknowledge
    logic       atomic_ack;
    logic       first;           // FIRST, ONLY: begins its message, of SEND, WRITE or READ response
    logic       last;            // LAST, ONLY
    logic       imm;             // immediate data
    logic       inv;             // key to invalidate
    logic       xrceth;          // XRC, requests: an XRCETH of 4 bytes follows the BTH
    logic [4:0] ext_len;         // bytes of extended headers after the BTH and the XRCETH, a multiple of 4
  } bth_t;

  // IBA volume 1, 5.2.1 (transports) and table 38 (operations, headers). UC has SEND and WRITE of RC, UD has both kinds of
  // SEND ONLY, with a DETH of 8 bytes before the immediate. XRC (annex A14) has all of RC, and an XRCETH in each request.
  // ext_len does not count the XRCETH: the parser takes it out, so later stages find the other headers where RC has them.
  // FLUSH and ATOMIC WRITE are from annex A19.
  function automatic bth_t bth_decode(input logic [7:0] opcode);
    bth_t r;
    logic ud;
    r = '0;
    ud = 1'b0;
    case (opcode[7:5])
      3'b000: begin
        r.transport = XP_RC;
        r.valid = opcode[4:0] <= 5'h14 || opcode[4:1] == 4'hb || opcode[4:1] == 4'he;
      end
      3'b001: begin
        r.transport = XP_UC;
        r.valid = opcode[4:0] <= 5'h0b;
      end
      3'b011: begin
        r.transport = XP_UD;
        r.valid = opcode[4:1] == 4'h2;
        ud = r.valid;
      end
      3'b101: begin
        r.transport = XP_XRC;
        r.valid = opcode[4:0] <= 5'h14 || opcode[4:1] == 4'hb || opcode[4:1] == 4'he;
      end
      default: r.transport = XP_OTHER;
    endcase
    if (r.valid) begin
      case (opcode[4:0])
        5'h00: {r.send, r.first} = '1;
        5'h01: r.send = 1'b1;
        5'h02: {r.send, r.last} = '1;
        5'h03: {r.send, r.last, r.imm} = '1;
        5'h04: {r.send, r.first, r.last} = '1;
        5'h05: {r.send, r.first, r.last, r.imm} = '1;
        5'h06: {r.write, r.first} = '1;
        5'h07: r.write = 1'b1;
        5'h08: {r.write, r.last} = '1;
        5'h09: {r.write, r.last, r.imm} = '1;
        5'h0a: {r.write, r.first, r.last} = '1;
        5'h0b: {r.write, r.first, r.last, r.imm} = '1;
        5'h0c: r.read = 1'b1;
        5'h0d: {r.response, r.first} = '1;
        5'h0e: r.response = 1'b1;
        5'h0f: {r.response, r.last} = '1;
        5'h10: {r.response, r.first, r.last} = '1;
        5'h11: r.ack = 1'b1;
        5'h12: {r.response, r.atomic_ack} = '1;
        5'h13: r.atomic = 1'b1;
        5'h14: {r.atomic, r.fetch_add} = '1;
        5'h16: {r.send, r.last, r.inv} = '1;
        5'h1c: {r.read, r.flush} = '1;
        5'h1d: {r.read, r.awrite} = '1;
        default: {r.send, r.first, r.last, r.inv} = '1;  // 5'h17
      endcase
      case (opcode[4:0])
        5'h03, 5'h05, 5'h09: r.ext_len = 5'd4;           // ImmDt
        5'h06, 5'h0a, 5'h0c, 5'h1d: r.ext_len = 5'd16;   // RETH
        5'h0b, 5'h1c: r.ext_len = 5'd20;                 // RETH, ImmDt; FETH, RETH
        5'h0d, 5'h0f, 5'h10, 5'h11: r.ext_len = 5'd4;    // AETH
        5'h12: r.ext_len = 5'd12;                        // AETH, AtomicAckETH
        5'h13, 5'h14: r.ext_len = 5'd28;                 // AtomicETH
        5'h16, 5'h17: r.ext_len = 5'd4;                  // IETH
        default: ;
      endcase
      r.xrceth = r.transport == XP_XRC && !r.ack && !r.response;
      if (ud) r.ext_len[3] = 1'b1;                       // DETH: 8 bytes and what follows it, 0 or 4
    end
    return r;
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
