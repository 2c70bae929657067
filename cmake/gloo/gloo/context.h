// SPDX-License-Identifier: Apache-2.0
// PyTorch's wheel has Gloo inside its library but leaves its headers out, and ProcessGroupGloo.hpp
// includes them. It only holds pointers to these classes: their names are enough. Searched after
// the wheel's own folders, so that real headers win where they are there.
#pragma once

#include <chrono>
#include <memory>

namespace gloo {

class Context {
  public:
    void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
