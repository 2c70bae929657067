// SPDX-License-Identifier: Apache-2.0
// The exit codes of all commands. README and every --help show the same list.
#pragma once

namespace saturate {

enum ExitCode : int {
    kDone = 0,
    kAnswerIsNo = 1,  // ran well, but the answer is no
    kUser = 2,
    kMachine = 3,
    kJobFailed = 4,
    kOurBug = 70,
    kRunFailed = 125,  // `run` itself failed; otherwise it returns the child's status
    kInterrupted = 130,
};

}  // namespace saturate
