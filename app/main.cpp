// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "commands.h"
#include "dispatch.h"

int main(int argc, char** argv) {
    using namespace saturate;
    if (argc == 3 && std::string_view(argv[1]) == "loader-process")
        return cmd_loader_process(argv[2]);
    constexpr Handler kHandlers[] = {
        {"bench", cmd_bench},       {"completion", cmd_completion},
        {"data", cmd_data},         {"demo", cmd_demo},
        {"diagnose", cmd_diagnose}, {"doctor", cmd_doctor},
        {"fix", cmd_fix},           {"monitor", cmd_monitor},
        {"optimize", cmd_optimize}, {"report", cmd_report},
        {"run", cmd_run},           {"serve", cmd_serve},
        {"tune", cmd_tune},
    };
    return dispatch(argc, argv, Program::saturate, kHandlers);
}
