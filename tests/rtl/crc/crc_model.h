/* SPDX-License-Identifier: Apache-2.0 */
/* C interface to the Verilated urdma_crc32: one call is one clock cycle. */
#ifndef CRC_MODEL_H
#define CRC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct crc_model;

/* start values: those of the RTL package, or one's own */
enum crc_init { INIT_CRC32, INIT_ICRC_ETH, INIT_ICRC_VLAN, INIT_VALUE };

struct crc_beat {
	uint8_t data[64];
	unsigned int len;
	bool first;
	bool last;
	enum crc_init init_sel;
	uint32_t init; /* with INIT_VALUE */
};

struct crc_model *crc_model_new(void);
void crc_model_free(struct crc_model *m);
/* Clock one cycle with beat (NULL: none). True if a CRC is on the output after it. */
bool crc_model_cycle(struct crc_model *m, const struct crc_beat *beat, uint32_t *crc);

#ifdef __cplusplus
}
#endif

#endif
