// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_features.h"

#if defined(__x86_64__)
#if defined(__clang__)
#define _Bool bool  // the header below is written for C, of which g++ knows this word
#endif
#include <sys/platform/x86.h>
#endif

namespace saturate {

#if defined(__x86_64__)
bool has_sse42() { return CPU_FEATURE_ACTIVE(SSE4_2); }
bool has_avx2_and_fma() { return CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(FMA); }
#else
bool has_sse42() { return false; }
bool has_avx2_and_fma() { return false; }
#endif

}  // namespace saturate
