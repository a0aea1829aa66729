// SPDX-License-Identifier: Apache-2.0
// Sizes and types inside urdma_eth_rx.
/* verilator lint_off UNUSEDPARAM */
package urdma_eth_rx_pkg;
  import urdma_pkg::*;

  localparam int LINE_W = 10;      // log2 of the frame buffer's lines of 64 bytes
  localparam int FRM_W = 8;        // log2 of the frames that may wait in it
  localparam int ADR_W = 7;        // log2 of the buffer addresses that are fetched ahead for a queue
  localparam int MAX_LINES = (ETH_MAX_FRAME + 4 + 63) / 64;

  // A frame in the buffer.
  typedef struct packed {
    logic [ETHQ_W-1:0] q;
    logic              mcast;
    logic              vlan;       // a tag was taken out
    logic [15:0]       tci;
    logic [1:0]        hash_type;  // 0 none, 1 addresses, 2 with ports
    logic [31:0]       hash;
    logic [13:0]       len;
    logic [15:0]       csum;
  } frame_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
