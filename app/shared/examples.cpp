// SPDX-License-Identifier: Apache-2.0
// Two example commands for each verb, for its help. Each must parse; a test checks them all.
#include <array>

#include "verbs.h"

namespace saturate {

namespace {

struct VerbExample {
    std::string_view verb;
    std::string_view command;  // the text after "saturate "
    std::string_view what;
};

constexpr VerbExample kExamples[] = {
    {"fix", "fix --dry-run -- python train.py", "read only: what it would change, and why"},
    {"fix", "fix --write -- python train.py", "try, prove, and change your files"},
    {"doctor", "doctor", "show what this machine has"},
    {"doctor", "doctor --json", "the same for a program"},
    {"optimize", "optimize --config config.yaml", "write config_gpu_optimized.yaml"},
    {"optimize", "optimize --config config.yaml --benchmark -- python train.py --config {config}",
     "measure with your own program"},
    {"tune", "tune --config config.yaml --budget 10m", "search for ten minutes"},
    {"tune", "tune --set batch_size=32 -- python train.py --bs {batch_size}",
     "find the best value of one of your own options"},
    {"demo", "demo", "run fix on a small slow project"},
    {"demo", "demo restoration", "one of the five jobs in configs/"},
    {"train", "train --config config.yaml", "train the job of this file"},
    {"train", "train --config config.yaml --resume", "continue from the last checkpoint"},
    {"data", "data make classifier", "pictures to try it with"},
    {"data", "data make window_cnn", "a table to try it with"},
    {"monitor", "monitor", "watch until Ctrl-C, then a verdict"},
    {"monitor", "monitor --interval 0.5 --duration 60", "one minute, twice a second"},
    {"run", "run -- python train.py", "watch a script, end with a diagnosis"},
    {"run", "run --steps 200 --apply safe -- python train.py", "200 steps with the safe changes"},
    {"diagnose", "diagnose trace.json.gz", "read a trace of PyTorch's profiler or Nsight"},
    {"diagnose", "diagnose saturate-runs/run-20260102-030405 --html why.html",
     "turn a record into a web page"},
    {"report", "report before after -o report.html", "compare two records"},
    {"report", "report before after --json", "the same for a program"},
    {"serve", "serve saturate-runs", "show all records of a folder, live"},
    {"serve", "serve saturate-runs --listen 127.0.0.1:9000", "at another address"},
    {"bench", "bench loader --config config.yaml", "how fast the data loads, by number of workers"},
    {"bench", "bench loader --config config.yaml --json", "the same for a program"},
    {"bench", "bench gpu --calibrate", "measure your card; makes one file to send us"},
    {"selftest", "selftest", "check that the engine computes correctly"},
    {"selftest", "selftest --device cuda", "on the GPU"},
    {"completion", "completion bash", "source <(saturate completion bash)"},
    {"completion", "completion zsh", "source <(saturate completion zsh)"},
};

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> verb_examples(std::string_view verb) {
    std::vector<std::pair<std::string_view, std::string_view>> out;
    for (const VerbExample& example : kExamples) {
        if (example.verb == verb) out.emplace_back(example.command, example.what);
    }
    return out;
}

}  // namespace saturate
