// SPDX-License-Identifier: Apache-2.0
// train --nproc N: starts N processes of this program on this host, like torchrun. Rank 0 uses the
// terminal; the output of the others goes to RUN/rank<k>/log.txt. If one process dies, the others
// get time to write a checkpoint and are then ended. With --max-restarts the group starts again
// from that checkpoint.
#pragma once

#include "arguments.h"

namespace saturate {

// Returns the exit code of the job: that of the first rank that failed.
int launch_ranks(const Arguments& arguments);

}  // namespace saturate
