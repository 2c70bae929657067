// SPDX-License-Identifier: Apache-2.0
#include "engine/nccl_environment.h"

#include <cstdlib>
#include <mutex>

namespace saturate {

void leave_nccl_errors_to_us() {
    static std::once_flag once;  // ranks may be threads
    std::call_once(once, [] {
        for (const char* name : {"TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
                                 "TORCH_NCCL_RETHROW_CUDA_ERRORS", "TORCH_NCCL_ENABLE_MONITORING",
                                 "TORCH_NCCL_DUMP_ON_TIMEOUT"})
            ::setenv(name, "0", 1);
    });
}

}  // namespace saturate
