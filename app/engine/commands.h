// SPDX-License-Identifier: Apache-2.0
// One function per verb of the `saturate-engine` program, each in cmd_<verb>.cpp.
#pragma once

namespace saturate {

class Arguments;
class JobRegistry;

int cmd_selftest(const Arguments& arguments);
int cmd_train(const Arguments& arguments);
// cmd_train with other jobs, for a user's own program (examples/own_job).
int train_with(const Arguments& arguments, const JobRegistry& jobs);

}  // namespace saturate
