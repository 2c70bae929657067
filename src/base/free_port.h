// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace saturate {

// A port of this host that is free now. Somebody may take it before whoever is to serve it does,
// who then says so. Throws MachineError.
[[nodiscard]] int free_port();

}  // namespace saturate
