// SPDX-License-Identifier: Apache-2.0
// CRC-32 (IEEE 802.3 polynomial, bits least significant first) as a linear map, and the start values for
// the invariant CRC of RoCEv2 (IBA volume 1, 7.8.1 and annex A17).
//
// The state is the usual reflected one: bit 31 is the coefficient of x^0, a byte enters with bit 0 first.
/* verilator lint_off UNUSEDPARAM */
package urdma_crc32_pkg;

  localparam logic [31:0] CRC32_POLY = 32'hedb88320;
  localparam logic [31:0] CRC32_INIT = 32'hffffffff;

  // one zero bit forward, and one back
  function automatic logic [31:0] crc32_step(input logic [31:0] s);
    return {1'b0, s[31:1]} ^ (s[0] ? CRC32_POLY : 32'd0);
  endfunction

  function automatic logic [31:0] crc32_unstep(input logic [31:0] s);
    return s[31] ? {s[30:0] ^ CRC32_POLY[30:0], 1'b1} : {s[30:0], 1'b0};
  endfunction

  // state before the `n` zero bytes that lead to s
  function automatic logic [31:0] crc32_unadvance(input logic [31:0] s, input int n);
    logic [31:0] t;
    t = s;
    for (int i = 0; i < 8 * n; i++) t = crc32_unstep(t);
    return t;
  endfunction

  // The ICRC begins with 8 bytes of ones in place of the local route header; this is the state after them.
  localparam logic [31:0] ICRC_INIT = 32'hdebb20e3;
  // The same state, moved to before an Ethernet header of 14 bytes (18 with a VLAN tag) whose bytes are set to zero: so a
  // frame goes through the engine in its original beats.
  localparam logic [31:0] ICRC_INIT_ETH = crc32_unadvance(ICRC_INIT, 14);
  localparam logic [31:0] ICRC_INIT_VLAN = crc32_unadvance(ICRC_INIT, 18);

endpackage
/* verilator lint_on UNUSEDPARAM */
