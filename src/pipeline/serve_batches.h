// SPDX-License-Identifier: Apache-2.0
// The loader process of a Python program: opens the requested data, fills batches in memory that
// both processes map, and announces finished ones over a socket. Run by `saturate loader-process`,
// which python/saturate_gpu/process.py starts.
#pragma once

namespace saturate {

// Returns when the other side of the socket or the parent process is gone.
void serve_batches(int socket);

}  // namespace saturate
