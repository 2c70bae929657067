// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace saturate {

// A port of this host that is free now. Another process may take it before the caller's server
// does; then the server reports it. Throws MachineError.
[[nodiscard]] int free_port();

}  // namespace saturate
