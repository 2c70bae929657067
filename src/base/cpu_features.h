// SPDX-License-Identifier: Apache-2.0
// Which instructions the processor has beyond the common ones. Asked of the C library, which knows
// it since the program began. Any thread.
#pragma once

namespace saturate {

[[nodiscard]] bool has_sse42();
[[nodiscard]] bool has_avx2_and_fma();

}  // namespace saturate
