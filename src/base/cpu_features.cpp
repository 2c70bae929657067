// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_features.h"

namespace saturate {

#if defined(__x86_64__)
bool has_sse42() { return __builtin_cpu_supports("sse4.2"); }
bool has_avx2_and_fma() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
bool has_sse42() { return false; }
bool has_avx2_and_fma() { return false; }
#endif

}  // namespace saturate
