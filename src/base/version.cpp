// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"

namespace saturate {

std::string_view saturate_version() { return SATURATE_VERSION; }

}  // namespace saturate
