// SPDX-License-Identifier: Apache-2.0
// Which of the planted faults is at work in this run: that of the environment variable URDMA_FAULT, 0 for none.
package urdma_mutate_pkg;
  import "DPI-C" function int urdma_fault();
  int fault = urdma_fault();
endpackage
