// SPDX-License-Identifier: Apache-2.0
// The program that links LibTorch; `saturate` turns into it for the verbs that need it.
#include "commands.h"
#include "dispatch.h"

int main(int argc, char** argv) {
    using namespace saturate;
    constexpr Handler kHandlers[] = {
        {"selftest", cmd_selftest},
        {"train", cmd_train},
    };
    return dispatch(argc, argv, Program::engine, kHandlers);
}
