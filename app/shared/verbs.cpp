// SPDX-License-Identifier: Apache-2.0
// The table of verbs. For a new verb, add a row here and a handler in main.cpp or engine/main.cpp.
#include "verbs.h"

#include <fmt/format.h>

#include <array>

#include "config/reference_jobs.h"

namespace saturate {

namespace {

constexpr Option kJson{
    .name = "--json", .value = "", .help = "one JSON object on stdout (docs/json.md)"};

// An option of every verb that prints text.
constexpr Option kLang{.name = "--lang",
                       .value = "LANG",
                       .help = "language of the output (default: from the locale)",
                       .choices = "en|zh"};

constexpr Option kForce{
    .name = "--force", .value = "", .help = "replace the output if it already exists"};

constexpr Option kServe{.name = "--serve",
                        .value = "ADDRESS",
                        .help = "show a live page of the run (default: 127.0.0.1:8765)",
                        .value_optional = true};

// Options that tune and optimize --benchmark share.
std::vector<Option> tuning_options(std::vector<Option> own) {
    own.insert(own.end(),
               {{.name = "--device",
                 .value = "DEVICE",
                 .help = "auto, cpu, cuda, cuda:N or sim:GPU",
                 .fallback = "auto"},
                {.name = "--budget", .value = "TIME", .help = "90s, 10m or 1h", .fallback = "5m"},
                {.name = "--min", .value = "N", .help = "smallest batch size to try"},
                {.name = "--max", .value = "N", .help = "largest batch size to try"},
                {.name = "--step",
                 .value = "N",
                 .help = "batch sizes are multiples of N",
                 .fallback = "8"},
                {.name = "--target-util",
                 .value = "PERCENT",
                 .help = "find the smallest batch that keeps the device this busy"},
                {.name = "--memory-share",
                 .value = "SHARE",
                 .help = "largest share of the device's memory to use",
                 .fallback = "0.9"},
                {.name = "--effective-batch",
                 .value = "N",
                 .help = "keep N samples per optimizer step, by gradient accumulation"},
                {.name = "--fresh",
                 .value = "",
                 .help = "measure again, even what an earlier search measured"},
                {.name = "--quiet", .value = "", .help = "no progress lines"}});
    return own;
}

// A function and not a global variable, so that nothing runs before main.
std::vector<Verb> make_verbs() {
    static const std::string kJobChoices = written_up_jobs("|");
    static const std::string kJobDetails = fmt::format("JOB: {}\n", written_up_jobs(", "));
    static const std::string kDemoDetails = fmt::format(
        "Without a job, demo runs fix on a small Python project. If there is no Python with torch, "
        "it runs the job {}.\nExit status 1: nothing faster was found.\n",
        shown_job().name);
    return {
        {.name = "fix",
         .summary = "find out why your training job is slow, and get a patch with a proven gain",
         .usage = "fix [--dry-run] [--config FILE]... [--level LEVEL] [--budget TIME] [--write] "
                  "[-o DIR] [--json] -- COMMAND...",
         .options =
             {{.name = "--dry-run",
               .value = "",
               .help = "only read the sources; your code is not run"},
              {.name = "--config",
               .value = "FILE",
               .help = "a configuration file that the command does not name",
               .repeats = true},
              {.name = "--level",
               .value = "LEVEL",
               .help = "how far a change may go",
               .fallback = "numerics",
               .choices = "safe|numerics|training"},
              {.name = "--budget",
               .value = "TIME",
               .help = "for trials and proof: 90s, 10m or 1h",
               .fallback = "10m"},
              {.name = "--min",
               .value = "N",
               .help = "smallest batch size to try (level training)"},
              {.name = "--max", .value = "N", .help = "largest batch size to try"},
              {.name = "--step",
               .value = "N",
               .help = "batch sizes are multiples of N",
               .fallback = "8"},
              {.name = "--write",
               .value = "",
               .help = "change your files once the gain is proven; the originals are kept"},
              {.name = "--output",
               .value = "DIR",
               .help =
                   "a new folder for fix.patch and fix.json (default: saturate-runs/fix-<time>)",
               .short_name = "-o"},
              kServe,
              {.name = "--all", .value = "", .help = "show long lists in full"},
              kJson},
         .takes_command = true,
         .details = "Trials run in a scratch copy of the folder; your files change only with "
                    "--write, after the proof.\n"
                    "Exit status 0: there is a patch (proven, or with --dry-run to try).\n"
                    "Exit status 1: nothing to gain was found.\n"
                    "Exit status 4: your job fails without any change, or ends too soon to be "
                    "measured.\n"},
        {.name = "doctor",
         .summary = "show what this machine has, what is missing, and what you lose without it",
         .usage = "doctor [--data DIR] [--json]",
         .options = {{.name = "--data",
                      .value = "DIR",
                      .help = "measure free space and read speed of this folder"},
                     kJson}},
        {.name = "optimize",
         .summary = "adapt your configuration to this machine, with a reason for each change",
         .usage = "optimize --config FILE [-o FILE] [--gpu NAME] [--level LEVEL] [--benchmark] "
                  "[--dry-run] [--json] [-- COMMAND...]",
         .options = tuning_options(
             {{.name = "--config",
               .value = "FILE",
               .help = "your configuration (YAML, JSON or TOML)",
               .required = true},
              {.name = "--output",
               .value = "FILE",
               .help = "where to write; - is standard output (default: <name>_gpu_optimized.yaml)",
               .short_name = "-o"},
              kForce,
              {.name = "--in-place",
               .value = "",
               .help = "rewrite the input, leaving <name>.bak beside it"},
              {.name = "--gpu",
               .value = "NAME",
               .help = "optimise for this GPU, e.g. \"RTX 4090\", or cpu"},
              {.name = "--gpu-memory",
               .value = "GB",
               .help = "its memory, if it differs from the usual amount"},
              {.name = "--gpus", .value = "N", .help = "how many GPUs the job runs on"},
              {.name = "--cores", .value = "N", .help = "CPU cores of the machine it will run on"},
              {.name = "--memory", .value = "GB", .help = "main memory of that machine"},
              {.name = "--workers",
               .value = "N",
               .help = "loader workers per process, instead of the computed number"},
              {.name = "--dataset-size",
               .value = "N",
               .help = "number of training samples, if the file does not say"},
              {.name = "--level",
               .value = "LEVEL",
               .help = "how far a change may go",
               .fallback = "training",
               .choices = "safe|numerics|training|model"},
              {.name = "--dialect",
               .value = "NAME",
               .help = "the framework whose key names the file uses, if the file does not show it "
                       "(docs/settings.md)"},
              {.name = "--benchmark",
               .value = "",
               .help = "find the best settings by measuring on this machine, and prove the gain"},
              {.name = "--unproven",
               .value = "",
               .help = "with --benchmark: also write what was found or estimated, but not proven"},
              {.name = "--dry-run", .value = "", .help = "show the changes, write nothing"},
              kJson}),
         .takes_command = true,
         .details = "COMMAND starts the program that reads the configuration.\n"
                    "With --benchmark each trial runs it with a copy of the file.\n"
                    "Without, only its sources are read, to see which keys it uses.\n"},
        {.name = "tune",
         .summary = "find the best settings by measuring, and prove the gain",
         .usage = "tune (--config FILE | --set KEY=VALUE... -- COMMAND...) [--device DEVICE] "
                  "[--budget TIME] [--level LEVEL] [-o DIR] [--json]",
         .options =
             tuning_options({{.name = "--config",
                              .value = "FILE",
                              .help = "the job and its settings, the same file as for train"},
                             {.name = "--set",
                              .value = "KEY=VALUE",
                              .help = "starting value of a placeholder in the command",
                              .repeats = true},
                             {.name = "--output",
                              .value = "DIR",
                              .help = "a new folder for trials and proof (default: "
                                      "saturate-runs/tune-<time>)",
                              .short_name = "-o"},
                             kServe,
                             {.name = "--level",
                              .value = "LEVEL",
                              .help = "how far a change may go",
                              .fallback = "training",
                              .choices = "safe|numerics|training|model"},
                             kJson}),
         .takes_command = true,
         .details = "Each trial runs in its own process: one that crashes, hangs or runs out of "
                    "memory does not end the search.\n"
                    "Ctrl-C keeps the best so far (exit status 130). Exit status 1: nothing is "
                    "proven faster.\n"},
        {.name = "demo",
         .summary = "try it on a slow job: why it is slow, what helps, and the proof",
         .usage = "demo [JOB] [--device DEVICE] [-o DIR] [--json]",
         .options = {{.name = "--device",
                      .value = "DEVICE",
                      .help = "cpu, cuda, cuda:N or sim:GPU (default: simulates the GPU that the "
                              "job's write-up names)"},
                     {.name = "--output",
                      .value = "DIR",
                      .help = "a new folder for the runs (default: "
                              "saturate-runs/demo-<job>-<time>)",
                      .short_name = "-o"},
                     {.name = "--quiet", .value = "", .help = "no progress lines"},
                     kJson},
         .operands = kJobChoices,
         .details = kDemoDetails},
        {.name = "train",
         .summary = "train natively in C++: run record, checkpoints, exact resume, several devices",
         .usage = "train --config FILE [--device DEVICE] [--epochs N | --steps N | --seconds N] "
                  "[--resume [auto|PATH]] [--set KEY=VALUE]... [--grid KEY=A,B]... [--nproc N] [-o "
                  "RUN] [--json]",
         .options =
             {{.name = "--config",
               .value = "FILE",
               .help = "the job and its settings (docs/settings.md)",
               .required = true},
              {.name = "--device",
               .value = "DEVICE",
               .help = "auto, cpu, cuda, cuda:N or sim:GPU",
               .fallback = "auto"},
              {.name = "--epochs", .value = "N", .help = "stop after N epochs"},
              {.name = "--steps", .value = "N", .help = "stop after N optimizer steps"},
              {.name = "--seconds", .value = "N", .help = "stop after N seconds"},
              {.name = "--resume",
               .value = "PATH",
               .help = "continue from a checkpoint; auto: the newest complete one of this run",
               .value_optional = true},
              {.name = "--set",
               .value = "KEY=VALUE",
               .help = "a setting to use instead of the file's",
               .repeats = true},
              {.name = "--grid",
               .value = "KEY=A,B",
               .help = "one run for each value and each combination; the best is named",
               .repeats = true},
              {.name = "--output",
               .value = "DIR",
               .help = "folder of the run (default: saturate-runs/<config>-<time>)",
               .short_name = "-o"},
              kServe,
              {.name = "--nproc",
               .value = "N",
               .help = "start N processes on this host, one per device, and average their "
                       "gradients (docs/parallel.md)"},
              {.name = "--max-restarts",
               .value = "N",
               .help = "with --nproc: when a process dies, restart from the last checkpoint, at "
                       "most N times",
               .fallback = "0"},
              {.name = "--snapshot",
               .value = "FILE",
               .help =
                   "read this copy of --config; relative paths in it still start from --config"},
              {.name = "--one-batch",
               .value = "",
               .help = "train on the first batch over and over, to see what loading costs"},
              {.name = "--bare",
               .value = "",
               .help = "no evaluation, no checkpoint: for measurements"},
              {.name = "--quiet", .value = "", .help = "no progress lines"},
              kJson},
         .program = Program::engine,
         .details = "Ctrl-C finishes the step and writes a checkpoint and the summary (exit "
                    "status 130). A failed run has exit status 4.\n"
                    "The folder holds the run record (docs/run-record.md), checkpoints/ and "
                    "tensorboard/.\n"},
        {.name = "data",
         .summary = "make data for one of the reference jobs, as real files",
         .usage = "data make JOB [-o PATH] [--samples N] [--seed N] [--json]",
         .options = {{.name = "--output",
                      .value = "DIR",
                      .help = "where to write (default: as configs/JOB_before.yaml says)",
                      .short_name = "-o"},
                     {.name = "--samples",
                      .value = "N",
                      .help = "pictures, or rows of a table (default: enough to try it)"},
                     {.name = "--seed",
                      .value = "N",
                      .help = "seed of the random numbers",
                      .fallback = "1"},
                     kJson},
         .operands = "make JOB",
         .details = kJobDetails},
        {.name = "monitor",
         .summary = "watch the GPU live, and end with a verdict",
         .usage = "monitor [--interval SECONDS] [--duration SECONDS] [--gpu LIST] [--pid PID | -- "
                  "COMMAND...]",
         .options = {{.name = "--interval",
                      .value = "SECONDS",
                      .help = "time between two readings, 0.1 to 3600",
                      .fallback = "1"},
                     {.name = "--duration",
                      .value = "SECONDS",
                      .help = "how long to watch; 0: until Ctrl-C",
                      .fallback = "0"},
                     {.name = "--gpu",
                      .value = "LIST",
                      .help = "only these GPUs, e.g. 0,2 (default: all)"},
                     {.name = "--pid",
                      .value = "PID",
                      .help = "also watch this process and its children, and stop when it ends"},
                     {.name = "--run",
                      .value = "DIR",
                      .help = "without NVML: read how busy the device is from the run record that "
                              "the job writes"},
                     {.name = "--json",
                      .value = "",
                      .help = "one JSON object per line, the summary last (docs/json.md)"},
                     {.name = "--csv",
                      .value = "",
                      .help = "CSV, one line per GPU and reading; the summary goes to stderr"},
                     {.name = "--output",
                      .value = "DIR",
                      .help = "also write a run record into this new folder",
                      .short_name = "-o"},
                     {.name = "--prometheus",
                      .value = "ADDRESS",
                      .help = "serve metrics (default: 127.0.0.1:9838)",
                      .value_optional = true},
                     kServe,
                     {.name = "--record",
                      .value = "FILE",
                      .help = "also record the driver's answers (docs/nvml-recording.md)"},
                     kForce,
                     {.name = "--replay",
                      .value = "FILE",
                      .help = "replay a recording instead of watching a GPU"},
                     {.name = "--good",
                      .value = "PERCENT",
                      .help = "utilisation is good from this value up",
                      .fallback = "85"},
                     {.name = "--low",
                      .value = "PERCENT",
                      .help = "utilisation is low below this value",
                      .fallback = "70"},
                     {.name = "--fluctuation",
                      .value = "POINTS",
                      .help = "utilisation fluctuates above this deviation",
                      .fallback = "10"},
                     {.name = "--hot",
                      .value = "CELSIUS",
                      .help = "a GPU is hot above this temperature",
                      .fallback = "85"},
                     {.name = "--cpu",
                      .value = "PERCENT",
                      .help = "the CPU is the bottleneck above this utilisation",
                      .fallback = "90"}},
         .takes_command = true,
         .details =
             "On a terminal: a live view (q quits, p pauses, arrows choose a GPU, u changes "
             "units). Otherwise one line per reading.\nWith a command: it is started and watched "
             "with its children; monitor ends with it (exit status 4 if it failed).\nCtrl-C, "
             "SIGTERM and SIGHUP end with the summary too (exit status 130).\n"},
        {.name = "run",
         .summary = "watch any training command from inside and outside, and end with a diagnosis",
         .usage = "run [--apply LIST] [--profile auto|off|N] [--losses] [--seconds N | --steps N] "
                  "[-o DIR] -- COMMAND...",
         .options = {{.name = "--apply",
                      .value = "LIST",
                      .help = "change settings while it runs: safe, numerics, auto, or a "
                              "comma-separated list of names (docs/run.md)"},
                     {.name = "--profile",
                      .value = "WHEN",
                      .help = "record a profiler window: auto, off, or a number of steps",
                      .fallback = "auto"},
                     {.name = "--losses",
                      .value = "",
                      .help =
                          "record losses on a GPU even if the script does not read them itself"},
                     {.name = "--seconds",
                      .value = "N",
                      .help = "stop the command after N seconds (exit status 124)"},
                     {.name = "--steps",
                      .value = "N",
                      .help = "stop it after N training steps (exit status 124)"},
                     {.name = "--output",
                      .value = "DIR",
                      .help = "a new folder for the run record (default: "
                              "saturate-runs/run-<time>)",
                      .short_name = "-o"},
                     kServe,
                     {.name = "--json",
                      .value = "",
                      .help = "one JSON object on stdout (docs/json.md); what the command prints "
                              "goes to stderr"}},
         .takes_command = true,
         .has_its_status = true,
         .details = "The command keeps its terminal, signals and exit status; what saturate says "
                    "goes to stderr.\n"},
        {.name = "diagnose",
         .summary = "say why the GPU is idle, what to do about it, and what that would gain",
         .usage = "diagnose INPUT... [--all] [--top N] [--html FILE] [--fail-on PERCENT] [--apply] "
                  "[--json]",
         .options =
             {{.name = "--all",
               .value = "",
               .help = "also show what gains less than 3 %, and optional changes"},
              {.name = "--top", .value = "N", .help = "show at most N findings", .fallback = "5"},
              {.name = "--html",
               .value = "FILE",
               .help = "also write a page with the timeline of one step; - is standard output"},
              kForce,
              {.name = "--fail-on",
               .value = "PERCENT",
               .help = "exit with status 1 if a finding would gain this much or more"},
              {.name = "--before",
               .value = "INPUT",
               .help = "compare with --after: what changed, and was the prediction right"},
              {.name = "--after", .value = "INPUT", .help = "the input after the fix"},
              {.name = "--apply",
               .value = "",
               .help = "edit the configuration among the inputs, leaving <name>.bak beside it"},
              {.name = "--limit",
               .value = "GB",
               .help = "the largest trace to unpack",
               .fallback = "4.3"},
              {.name = "--how", .value = "", .help = "print how to record a good trace"},
              kJson},
         .operands = "TRACE|RUN|CONFIG|PROGRAM...",
         .details =
             "An input is a trace of PyTorch's profiler (.json, .gz, .zst), an export of Nsight "
             "Systems (.sqlite), a folder of traces (one per rank), a run record, a configuration, "
             "or a Python program, which is read and not run.\n"
             "Give several about one job, and they are combined.\n"},
        {.name = "report",
         .summary = "compare runs on a web page",
         .usage = "report RUN [RUN2...] [-o FILE] [--markdown] [--fail-on PERCENT] [--json] "
                  "[--lang LANG]",
         .options = {{.name = "--output",
                      .value = "FILE",
                      .help = "the page to write; - is standard output",
                      .fallback = "report.html",
                      .short_name = "-o"},
                     kForce,
                     {.name = "--markdown", .value = "", .help = "Markdown on stdout instead"},
                     {.name = "--fail-on",
                      .value = "PERCENT",
                      .help =
                          "exit with status 1 if the last run is this much slower than the first"},
                     kJson},
         .operands = "RUN..."},
        {.name = "serve",
         .summary = "show your runs as live web pages",
         .usage = "serve (DIR | --live [DIR]) [--listen ADDRESS] [--token] [--lang LANG]",
         .options =
             {{.name = "--live",
               .value = "",
               .help =
                   "open the newest run, or wait for the first one (default DIR: saturate-runs)"},
              {.name = "--listen",
               .value = "ADDRESS",
               .help = "PORT, ADDRESS or ADDRESS:PORT (default: 127.0.0.1:8765)"},
              {.name = "--token",
               .value = "",
               .help = "ask for a token on 127.0.0.1 too, since other users of this machine can "
                       "reach it"},
              {.name = "--pid", .value = "PID", .help = "stop when this process ends"}},
         .operands = "DIR",
         .details = "The first line on stdout is the address to open; Ctrl-C ends it.\n"
                    "DIR is a run record, or a folder that holds some.\n"
                    "An address that others can reach asks for a token, which is part of the "
                    "address printed.\n"
                    "fix, monitor, run, train and tune start it with --serve.\n"},
        {.name = "bench",
         .summary = "measure how fast your data loads here, and what your GPU can do",
         .usage = "bench loader|gpu [--config FILE] [--device DEVICE] [--seconds SECONDS] "
                  "[--calibrate] [--json]",
         .options = {{.name = "--config",
                      .value = "FILE",
                      .help = "loader: the configuration that names the data and the batch size"},
                     {.name = "--seconds",
                      .value = "SECONDS",
                      .help = "how long to measure in total (default: 20; gpu: 600)"},
                     {.name = "--batch-size",
                      .value = "N",
                      .help = "loader: instead of the configuration's"},
                     {.name = "--device",
                      .value = "DEVICE",
                      .help = "gpu: cuda, cpu, or sim:GPU to try it out (default: cuda)"},
                     {.name = "--job",
                      .value = "NAME",
                      .help = "gpu: this reference job only (default: all five)",
                      .repeats = true},
                     {.name = "--calibrate",
                      .value = "",
                      .help = "gpu: save the measured rates of the card, for simulating it (sim:)"},
                     {.name = "--output",
                      .value = "DIR",
                      .help = "gpu: a new folder (default: saturate-runs/bench-gpu-<time>)",
                      .short_name = "-o"},
                     {.name = "--quiet", .value = "", .help = "gpu: no progress lines"},
                     kJson},
         .operands = "loader|gpu",
         .details =
             "loader: samples per second by number of workers, what takes the time, and the "
             "fastest GPU that could keep up.\n"
             "gpu: the five reference jobs before and after, with proof; what diagnose predicted; "
             "and the simulated card beside the real one. It makes one file to send us.\n"},
        {.name = "selftest",
         .summary = "check that the engine computes correctly on this machine",
         .usage = "selftest [--device cpu|cuda] [--calibrate] [-o FILE] [--json]",
         .options = {{.name = "--device",
                      .value = "DEVICE",
                      .help = "what to test",
                      .fallback = "cpu",
                      .choices = "cpu|cuda"},
                     {.name = "--output",
                      .value = "FILE",
                      .help = "a new file with the results, to send in (default with --device "
                              "cuda: saturate-selftest.json)",
                      .short_name = "-o"},
                     {.name = "--calibrate",
                      .value = "",
                      .help = "also measure how fast the device is, for simulating it (sim:)"},
                     kJson},
         .program = Program::engine},
        {.name = "completion",
         .summary = "print the completion script of a shell",
         .usage = "completion bash|zsh",
         .options = {},
         .operands = "bash|zsh",
         .details = "  bash: source <(saturate completion bash)\n"
                    "  zsh:  saturate completion zsh > \"${fpath[1]}/_saturate\"\n"},
    };
}

}  // namespace

std::span<const Verb> verbs() {
    static const std::vector<Verb> kVerbs = [] {
        std::vector<Verb> out = make_verbs();
        for (Verb& verb : out)
            if (verb.name != "completion") verb.options.push_back(kLang);
        return out;
    }();
    return kVerbs;
}

const Verb* find_verb(std::string_view name) {
    for (const Verb& verb : verbs()) {
        if (verb.name == name) return &verb;
    }
    return nullptr;
}

const Option* find_option(const Verb& verb, std::string_view name) {
    for (const Option& option : verb.options) {
        if (option.name == name || (!option.short_name.empty() && option.short_name == name)) {
            return &option;
        }
    }
    return nullptr;
}

}  // namespace saturate
