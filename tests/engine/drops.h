/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the comments on dropped frames in a rig's captures with the counters of its NICs. */
#ifndef URDMA_TESTS_DROPS_H
#define URDMA_TESTS_DROPS_H

#include "rig.h"

/*
 * To be called when all traffic has ended and before the NICs are closed; the captures have to
 * begin at the NICs' start. Each drop that a NIC has counted has to have one comment with the name
 * of its counter. Prints on stdout how many of each there are. Returns false and prints the
 * difference on stderr if they differ. Frames that a NIC sends to itself are in no capture, so rigs
 * in loopback are not checked. home: NICs may have sent frames to themselves and dropped some, so
 * there may be more drops than comments.
 */
bool drops_check(struct rig *rig, bool home);

#endif
