// SPDX-License-Identifier: Apache-2.0
// libsimdjson is loaded when the first trace is read: no other verb pays for it at its start.
#pragma once

namespace saturate {

void load_simdjson();  // MachineError when it is not there; nothing to do from the second call on

}  // namespace saturate
