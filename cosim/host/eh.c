// SPDX-License-Identifier: Apache-2.0
// Driver of the embedded host.
#include "host/eh.h"
