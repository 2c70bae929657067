// SPDX-License-Identifier: Apache-2.0
// A command that was started beside us: `monitor -- COMMAND`. It inherits our terminal; Ctrl-C
// reaches it as it reaches us.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace saturate {

class Child {
  public:
    // `output_to_stderr`: its stdout goes to our stderr, to keep ours for results. Throws UserError
    // when the command cannot be started.
    Child(const std::vector<std::string>& command, bool output_to_stderr);
    ~Child();  // leaves a command that still runs alone
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    // Its exit code (128 + signal when one ended it) once it has ended, else nothing.
    [[nodiscard]] std::optional<int> status();
    int wait();  // blocks until it ends
    void signal(int number);

  private:
    pid_t pid_ = -1;
    std::optional<int> status_;
};

}  // namespace saturate
