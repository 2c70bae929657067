// SPDX-License-Identifier: Apache-2.0
#include "report/fix_run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log_text.h"
#include "base/text.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

constexpr std::size_t kCausesShown = 4;
constexpr std::size_t kLines = 8, kLineLength = 200;

// Returns the lines of the script itself: without those of `run`, empty lines, and Python's marks
// below a line of a traceback.
std::vector<std::string_view> own_lines(std::string_view log) {
    std::vector<std::string_view> lines = terminal_lines(trim(log));
    std::erase_if(lines, [](std::string_view line) {
        return line.starts_with("saturate:") ||
               line.find_first_not_of(" ^~\r") == std::string_view::npos;
    });
    return lines;
}

// Returns the index of the innermost frame of the last traceback that is in the user's own files.
// The frame has two lines: the place and its source. Returns lines.size() if there is none.
std::size_t own_frame(const std::vector<std::string_view>& lines) {
    for (std::size_t i = lines.size(); i-- > 0;) {
        std::string_view line = trim(lines[i]);
        if (line.starts_with("Traceback ")) break;
        bool is_installed = line.find("site-packages") != std::string_view::npos ||
                            line.find("/lib/python") != std::string_view::npos ||
                            line.find("File \"<") != std::string_view::npos;
        if (line.starts_with("File \"") && !is_installed && i + 1 < lines.size()) return i;
    }
    return lines.size();
}

std::string last_lines(const std::vector<std::string_view>& lines) {
    std::string out;
    auto add = [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i)
            out += fmt::format("    {}\n", shortened(lines[i], kLineLength));
    };
    std::size_t first = lines.size() > kLines ? lines.size() - kLines : 0;
    std::size_t frame = own_frame(lines);
    if (frame < first) {
        add(frame, frame + 2);
        out += "      ...\n";
        first = std::max(first + 3, frame + 2);
    }
    add(first, lines.size());
    return out;
}

// Returns the error of the last traceback, for a job that caught the error and exited normally.
std::string caught_error(std::string_view log) {
    std::size_t at = log.rfind("Traceback (most recent call last)");
    if (at == std::string_view::npos) return "";
    std::vector<std::string_view> lines = split(log.substr(at), '\n');
    // The error follows the frames of the traceback, which are indented.
    for (std::size_t i = 1; i < lines.size(); ++i)
        if (!lines[i].empty() && lines[i][0] != ' ') return std::string(trim(lines[i]));
    return "";
}

std::string headline(const TrialResult& job, std::string_view log) {
    switch (job.outcome) {
        case TrialOutcome::hang:
            if (!job.record.steps.empty())
                return fmt::format("Your job stopped training: {}", job.message);
            [[fallthrough]];
        case TrialOutcome::too_slow:
            return fmt::format("Your job could not be measured: {}", job.message);
        case TrialOutcome::out_of_memory:
        case TrialOutcome::out_of_host_memory:
            return fmt::format("Your job runs out of memory without any change: {}", job.message);
        case TrialOutcome::nonfinite:
            return fmt::format("The loss of your unchanged job is NaN or infinite: {}",
                               job.message);
        default:
            break;
    }
    if (!job.message.starts_with("it ended after"))
        return fmt::format("Your job fails without any change: {}", job.message);
    std::size_t steps = job.record.steps.size();
    if (std::string error = caught_error(log); !error.empty())
        return fmt::format("Your job catches an error and ends, after {} training step{}: {}",
                           steps, steps == 1 ? "" : "s", error);
    if (steps == 0) return "Your job ended, and no training step of PyTorch was seen";
    return fmt::format("Your job ended after {} training step{}: too few to measure", steps,
                       steps == 1 ? "" : "s");
}

// True if the message is an exception about a GPU, and not about a file or module with such a name.
bool is_about_gpu(const std::string& message) {
    static constexpr std::array<std::string_view, 4> kOf = {"RuntimeError", "AssertionError",
                                                            "ValueError", "AcceleratorError"};
    std::size_t colon = message.find(':');
    std::string text = lower(message);
    auto says = [&](std::string_view word) { return text.find(word) != std::string::npos; };
    return colon != std::string::npos &&
           std::ranges::any_of(
               kOf,
               [&](std::string_view name) { return message.substr(0, colon).ends_with(name); }) &&
           (says("cuda") || says("gpu") || says("nccl") || says("nvidia"));
}

// Returns what to do about this outcome, or "" if the last lines of the log already say it.
std::string remedy(const TrialResult& job, std::string_view log, bool has_gpu) {
    auto says = [&](std::string_view words) { return log.find(words) != std::string_view::npos; };
    if (says("EOFError"))
        return "it waits for keyboard input, which a trial does not have: pass it as arguments";
    if (says("the following arguments are required"))
        return "add its arguments after the script, as you normally start it";
    if (says("No module named 'torch'"))
        return "this Python has no PyTorch; name the one that you train with: saturate fix -- "
               "/path/to/python train.py";
    if (says("ModuleNotFoundError") || says("No module named"))
        return "start it as you normally do, from the same folder and with the Python that you "
               "train with: saturate fix -- /path/to/python train.py";
    if (job.message.starts_with("FileNotFoundError") ||
        job.message.starts_with("NotADirectoryError"))
        return "start it in the folder where you normally do, and name your data as you normally "
               "do";
    if (says("Found no NVIDIA driver") || says("No CUDA GPUs are available") ||
        says("Torch not compiled with CUDA"))
        return has_gpu
                   ? "this Python's PyTorch cannot use the GPU of this machine; name the one that "
                     "you train with: saturate fix -- /path/to/python train.py"
                   : "it needs a GPU, and this machine has none: run fix on the machine where you "
                     "train";
    if (!has_gpu && is_about_gpu(job.message))
        return "this machine has no GPU: if your job needs one, run fix on the machine where you "
               "train";
    if (says("No space left on device"))
        return "the disk is full; trials write below $TMPDIR: set it to a folder with free space";
    // A prompt for input is at the end, without a newline after it.
    if (job.outcome == TrialOutcome::hang && job.record.steps.empty() && !log.empty() &&
        log.back() != '\n')
        return "if it waits for keyboard input, pass that as arguments, because a trial has none; "
               "if "
               "it only needs longer to start, give it time: --budget 30m";
    if (job.outcome == TrialOutcome::hang && !job.record.steps.empty())
        return says("KeyboardInterrupt")
                   ? "these lines show where it was interrupted; if it evaluates or saves there "
                     "for "
                     "that long, give it time: --budget 30m"
                   : "if it evaluates or saves for that long, give it time: --budget 30m; if not, "
                     "py-spy dump --pid PID shows where it waits";
    if (job.outcome == TrialOutcome::too_slow && !job.record.steps.empty())
        return "its steps take long; give it time: --budget 30m";
    if (job.outcome == TrialOutcome::hang || job.outcome == TrialOutcome::too_slow)
        return "if it only needs longer to start, give it time: --budget 30m";
    if (job.outcome != TrialOutcome::failed || !job.message.starts_with("it ended after") ||
        !caught_error(log).empty())
        return "";
    return job.record.steps.empty()
               ? "name the training script; if this is the one: fix only sees PyTorch optimizers "
                 "and backward(), and a script that resumes from a finished checkpoint has nothing "
                 "left to train"
               : "a trial needs a few seconds of training: use more epochs or more data, and a new "
                 "output folder if the script resumes from a finished checkpoint";
}

}  // namespace

std::string fix_why_text(const Rate& rate, const std::vector<Finding>& findings) {
    std::string out = fmt::format("\nWhy it is slow: {} samples/s, {:.1f} ms per step\n",
                                  rate_text(rate.per_second), 1e3 * rate.step_seconds);
    std::size_t shown = 0;
    for (const Finding& finding : findings) {
        if (finding.optional || !finding.part_of.empty() || shown >= kCausesShown) continue;
        ++shown;
        std::string where = finding.where.empty() ? "" : fmt::format("  {}", finding.where);
        out += fmt::format("  {}{}\n      {}\n", finding.name(), where, finding.evidence);
    }
    if (shown == 0)
        out += "  no cause was found: the steps are computing, and no wait takes 3 % or more\n";
    return out;
}

std::string with_more_time_text(const FixAnswer& answer, const Proof* proof,
                                const std::function<std::string(const std::string&)>& with_budget) {
    std::vector<std::string> untried = answer.untried();
    bool is_unproven = proof && !proof->longer.empty();
    if (answer.is_interrupted || (untried.empty() && !is_unproven)) return "";
    std::string out;
    if (!untried.empty())
        out = fmt::format("not tried, for lack of time: {}\n", join(untried, ", "));
    // An unfinished proof has to be finished first; its budget covers the rest of the search.
    const std::string& budget = is_unproven ? proof->longer : answer.longer;
    if (budget.empty()) return out + "whole epochs are needed to measure it: that takes hours\n";
    return out + fmt::format("with more time: {}\n", with_budget(budget));
}

std::string fix_failure_text(const TrialResult& job, std::string_view log, bool has_gpu) {
    std::vector<std::string_view> lines = own_lines(log);
    std::string out = headline(job, log);
    out += lines.empty() ? "; it printed nothing\n" : "; its last lines:\n";
    out += last_lines(lines);
    if (std::string fix = remedy(job, log, has_gpu); !fix.empty())
        out += fmt::format("  fix: {}\n", fix);
    return out;
}

}  // namespace saturate
