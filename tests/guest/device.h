/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's test programs share. */
#ifndef TESTS_GUEST_DEVICE_H
#define TESTS_GUEST_DEVICE_H

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

/* The device of that name, or NULL, with a message. */
static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		fprintf(stderr, "cannot open %s\n", name);
	return ctx;
}

#endif
