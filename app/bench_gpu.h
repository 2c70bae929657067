// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace saturate {

class Arguments;
int bench_gpu(const Arguments& arguments);  // returns the exit code

}  // namespace saturate
