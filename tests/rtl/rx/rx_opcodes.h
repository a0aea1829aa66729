/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RX_OPCODES_H
#define RX_OPCODES_H

void test_opcodes(void **state);

#endif
