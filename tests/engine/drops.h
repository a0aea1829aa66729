/* SPDX-License-Identifier: Apache-2.0 */
/* Comments on dropped frames in the captures of a rig, against the counters of its NICs. */
#ifndef URDMA_TESTS_DROPS_H
#define URDMA_TESTS_DROPS_H

#include "rig.h"

/*
 * With all traffic at rest, before the NICs are closed, from whose start on the captures are: each
 * drop that a NIC has counted has one comment with the name of its counter. Prints on stdout how
 * many of each there are. False: not so, and stderr says what differs. Frames that a NIC sends to
 * itself are in no capture: rigs in loopback are not checked. home: the NICs may have received and
 * dropped some, so that there may be more drops than comments.
 */
bool drops_check(struct rig *rig, bool home);

#endif
