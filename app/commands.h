// SPDX-License-Identifier: Apache-2.0
// One function per verb of the `saturate` program, each in cmd_<verb>.cpp. It returns the exit
// code.
#pragma once

namespace saturate {

class Arguments;

int cmd_bench(const Arguments& arguments);
int cmd_completion(const Arguments& arguments);
int cmd_data(const Arguments& arguments);
int cmd_demo(const Arguments& arguments);
int cmd_diagnose(const Arguments& arguments);
int cmd_doctor(const Arguments& arguments);
int cmd_fix(const Arguments& arguments);
int cmd_loader_process(const char* socket);  // not in the table of verbs; for Python's loader
int cmd_monitor(const Arguments& arguments);
int cmd_optimize(const Arguments& arguments);
int cmd_report(const Arguments& arguments);
int cmd_run(const Arguments& arguments);
int cmd_serve(const Arguments& arguments);
int cmd_tune(const Arguments& arguments);

}  // namespace saturate
