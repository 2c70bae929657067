// SPDX-License-Identifier: Apache-2.0
// The loader of a Python process: opens what it is asked for, fills batches in memory that both
// processes map, and says over a socket which of them are ready. Run by `saturate loader-process`,
// which python/saturate_gpu/process.py starts.
#pragma once

namespace saturate {

// Returns when the other side of the socket is gone, or the process that started this one.
void serve_batches(int socket);

}  // namespace saturate
