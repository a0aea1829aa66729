/* SPDX-License-Identifier: Apache-2.0 */
/* C interface to lib_test_top: set inputs, lib_model_eval(), read outputs, lib_model_edge(). */
#ifndef LIB_MODEL_H
#define LIB_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lib_pins {
	/* in */
	bool rst;
	uint8_t in_valid, out_ready, req;
	uint32_t in_data;
	bool advance, wr_en, rd_en;
	uint8_t wr_addr, rd_addr;
	uint32_t wr_data;
	/* out */
	uint8_t in_ready, out_valid, grant, grant_idx;
	uint32_t out_data[3], rd_data;
	uint8_t count[2];
	bool grant_valid;
};

struct lib_model;

struct lib_model *lib_model_new(void);
void lib_model_free(struct lib_model *m);
void lib_model_eval(struct lib_model *m, struct lib_pins *p);
void lib_model_edge(struct lib_model *m);

#ifdef __cplusplus
}
#endif

#endif
