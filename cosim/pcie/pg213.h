/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors and sideband of the 512-bit user interface of AMD PG213 (UltraScale+ integrated
 * block for PCI Express), dword-aligned mode, straddling off: bit positions, and helpers to read
 * and write a field that lies inside an array of dwords. [n:m] below counts from bit 0 of the first
 * dword of the descriptor or of tuser.
 */
#ifndef URDMA_COSIM_PG213_H
#define URDMA_COSIM_PG213_H

#include <stdint.h>

/* A field: its lowest bit and its width (at most 32). */
struct pg213_field {
	uint16_t lsb;
	uint16_t width;
};
#define PG213_FIELD(hi, lo) ((struct pg213_field){ .lsb = (lo), .width = (hi) - (lo) + 1 })

static inline uint32_t pg213_get(const uint32_t *w, struct pg213_field f)
{
	unsigned int i = f.lsb / 32, s = f.lsb % 32;
	uint64_t v = w[i];

	if (s + f.width > 32)
		v |= (uint64_t)w[i + 1] << 32;
	return (uint32_t)((v >> s) & ((UINT64_C(1) << f.width) - 1));
}

static inline void pg213_set(uint32_t *w, struct pg213_field f, uint32_t value)
{
	unsigned int i = f.lsb / 32, s = f.lsb % 32;
	uint64_t mask = ((UINT64_C(1) << f.width) - 1) << s;
	uint64_t v = ((uint64_t)value << s) & mask;

	w[i] = (w[i] & ~(uint32_t)mask) | (uint32_t)v;
	if (s + f.width > 32)
		w[i + 1] = (w[i + 1] & ~(uint32_t)(mask >> 32)) | (uint32_t)(v >> 32);
}

/* Request descriptors, 4 dwords: completer request (CQ) and requester request (RQ). */
#define PG213_REQ_DW	    4u
#define PG213_REQ_AT	    PG213_FIELD(1, 0)
#define PG213_REQ_ADDR_LO   PG213_FIELD(31, 2) /* address[31:2] */
#define PG213_REQ_ADDR_HI   PG213_FIELD(63, 32)
#define PG213_REQ_DWORDS    PG213_FIELD(74, 64)
#define PG213_REQ_TYPE	    PG213_FIELD(78, 75)
#define PG213_RQ_POISONED   PG213_FIELD(79, 79)
#define PG213_REQ_REQUESTER PG213_FIELD(95, 80)
#define PG213_REQ_TAG	    PG213_FIELD(103, 96)
#define PG213_CQ_FUNCTION   PG213_FIELD(111, 104)
#define PG213_CQ_BAR	    PG213_FIELD(114, 112)
#define PG213_CQ_APERTURE   PG213_FIELD(120, 115)
#define PG213_RQ_COMPLETER  PG213_FIELD(119, 104)
#define PG213_RQ_ID_ENABLE  PG213_FIELD(120, 120)
#define PG213_REQ_TC	    PG213_FIELD(123, 121)
#define PG213_REQ_ATTR	    PG213_FIELD(126, 124)
#define PG213_RQ_FORCE_ECRC PG213_FIELD(127, 127)

#define PG213_TYPE_MEM_READ  0u
#define PG213_TYPE_MEM_WRITE 1u

/*
 * Bytes from the first to the last enabled one of a request; 0 if there is none. *skip: bytes
 * before the first.
 */
static inline uint32_t pg213_enabled(uint32_t dwords, uint32_t first_be, uint32_t last_be,
				     uint32_t *skip)
{
	uint32_t last = dwords == 1 ? first_be : last_be;

	*skip = 0;
	if (!first_be || !last)
		return 0;
	*skip = (uint32_t)__builtin_ctz(first_be);
	return (dwords - 1) * 4 + 32 - (uint32_t)__builtin_clz(last) - *skip;
}

/* Completion descriptors, 3 dwords: completer (CC) and requester (RC) completion. */
#define PG213_CPL_DW	    3u
#define PG213_CC_LOWER_ADDR PG213_FIELD(6, 0)
#define PG213_CC_AT	    PG213_FIELD(9, 8)
#define PG213_RC_LOWER_ADDR PG213_FIELD(11, 0)
#define PG213_RC_ERROR	    PG213_FIELD(15, 12)
#define PG213_CPL_BYTES	    PG213_FIELD(28, 16) /* bytes left, this completion included */
#define PG213_CPL_LOCKED    PG213_FIELD(29, 29)
#define PG213_RC_DONE	    PG213_FIELD(30, 30)
#define PG213_CPL_DWORDS    PG213_FIELD(42, 32)
#define PG213_CPL_STATUS    PG213_FIELD(45, 43)
#define PG213_CPL_POISONED  PG213_FIELD(46, 46)
#define PG213_CPL_REQUESTER PG213_FIELD(63, 48)
#define PG213_CPL_TAG	    PG213_FIELD(71, 64)
#define PG213_CPL_COMPLETER PG213_FIELD(87, 72)
#define PG213_CC_ID_ENABLE  PG213_FIELD(88, 88)
#define PG213_CPL_TC	    PG213_FIELD(91, 89)
#define PG213_CPL_ATTR	    PG213_FIELD(94, 92)

#define PG213_STATUS_SC 0u /* successful completion */
#define PG213_STATUS_UR 1u /* unsupported request */
#define PG213_STATUS_CA 4u /* completer abort */

#define PG213_ERROR_NONE     0u
#define PG213_ERROR_POISONED 1u
#define PG213_ERROR_STATUS   2u /* UR, CA or CRS; no data follows */
#define PG213_ERROR_TIMEOUT  9u /* only tag and "request completed" have a meaning */

/* A completion of UR or CA on CC carries five more dwords: the sideband and the request. */
#define PG213_CC_ERROR_DW 8u

/* tuser of CQ, 183 bits. */
#define PG213_CQ_FIRST_BE    PG213_FIELD(3, 0)
#define PG213_CQ_LAST_BE     PG213_FIELD(11, 8)
#define PG213_CQ_BYTE_EN_LSB 16u
#define PG213_CQ_IS_SOP	     PG213_FIELD(81, 80)
#define PG213_CQ_SOP0_PTR    PG213_FIELD(83, 82)
#define PG213_CQ_IS_EOP	     PG213_FIELD(87, 86)
#define PG213_CQ_EOP0_PTR    PG213_FIELD(91, 88)
#define PG213_CQ_DISCONTINUE PG213_FIELD(96, 96)

/* tuser of CC, 81 bits. */
#define PG213_CC_IS_SOP	     PG213_FIELD(1, 0)
#define PG213_CC_SOP0_PTR    PG213_FIELD(3, 2)
#define PG213_CC_IS_EOP	     PG213_FIELD(7, 6)
#define PG213_CC_EOP0_PTR    PG213_FIELD(11, 8)
#define PG213_CC_DISCONTINUE PG213_FIELD(16, 16)

/* tuser of RQ, 137 bits. The upper halves of the byte enables belong to a second, straddled TLP. */
#define PG213_RQ_FIRST_BE    PG213_FIELD(7, 0)
#define PG213_RQ_LAST_BE     PG213_FIELD(15, 8)
#define PG213_RQ_ADDR_OFFSET PG213_FIELD(19, 16)
#define PG213_RQ_IS_SOP	     PG213_FIELD(21, 20)
#define PG213_RQ_SOP0_PTR    PG213_FIELD(23, 22)
#define PG213_RQ_IS_EOP	     PG213_FIELD(27, 26)
#define PG213_RQ_EOP0_PTR    PG213_FIELD(31, 28)
#define PG213_RQ_DISCONTINUE PG213_FIELD(36, 36)
#define PG213_RQ_TPH_PRESENT PG213_FIELD(38, 37)

/* tuser of RC, 161 bits. byte_en starts at bit 0. */
#define PG213_RC_IS_SOP	     PG213_FIELD(67, 64)
#define PG213_RC_SOP0_PTR    PG213_FIELD(69, 68)
#define PG213_RC_IS_EOP	     PG213_FIELD(79, 76)
#define PG213_RC_EOP0_PTR    PG213_FIELD(83, 80)
#define PG213_RC_DISCONTINUE PG213_FIELD(96, 96)

#endif
