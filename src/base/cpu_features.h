// SPDX-License-Identifier: Apache-2.0
// Tells which optional instructions the processor has. Any thread.
#pragma once

namespace saturate {

[[nodiscard]] bool has_sse42();
[[nodiscard]] bool has_avx2_and_fma();

}  // namespace saturate
