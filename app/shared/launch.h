// SPDX-License-Identifier: Apache-2.0
// train --nproc N: starts N processes of this program on this host, as torchrun would. Rank 0 has
// the terminal; what the others say goes to RUN/rank<k>/log.txt. When one dies the rest is given
// time to keep a checkpoint and is then ended; with --max-restarts the group begins again from it.
#pragma once

#include "arguments.h"

namespace saturate {

// The exit status of the job: of the first rank that failed.
int launch_ranks(const Arguments& arguments);

}  // namespace saturate
