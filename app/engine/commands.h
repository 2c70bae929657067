// SPDX-License-Identifier: Apache-2.0
// One function per verb of the `saturate-engine` program, each in its cmd_<verb>.cpp.
#pragma once

namespace saturate {

class Arguments;

int cmd_selftest(const Arguments& arguments);
int cmd_train(const Arguments& arguments);

}  // namespace saturate
