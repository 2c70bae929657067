// SPDX-License-Identifier: Apache-2.0
// What the ranks of a data-parallel job do together besides their gradients: begin from the same
// weights, agree on losses and metrics, keep a checkpoint when one of them is lost.
#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "engine/seed.h"
#include "engine/trainer.h"

namespace saturate {

namespace {

constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;

std::uint64_t hash_bytes(std::uint64_t hash, const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    for (; size >= 8; size -= 8, bytes += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, 8);
        hash = (hash ^ word) * kSpread;
        hash ^= hash >> 29;
    }
    for (; size > 0; --size, ++bytes) hash = (hash ^ *bytes) * kSpread;
    return hash;
}

std::uint64_t hash_of(const NamedTensors& tensors, bool with_values) {
    std::uint64_t hash = 1;
    for (const auto& [name, tensor] : tensors) {
        hash = hash_bytes(hash, name.data(), name.size());
        for (std::int64_t length : tensor.sizes()) hash = hash_bytes(hash, &length, sizeof length);
        if (!with_values) continue;
        torch::Tensor values = tensor.detach().cpu().contiguous();
        hash = hash_bytes(hash, values.const_data_ptr(), values.nbytes());
    }
    return hash;
}

torch::Tensor random_state() {
    at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
    std::lock_guard lock(generator.mutex());
    return generator.get_state().clone();
}

void set_random_state(const torch::Tensor& state) {
    at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
}

std::string text_of(const std::optional<std::int64_t>& value) {
    return value ? std::to_string(*value) : "-";
}

}  // namespace

void Trainer::begin_ranks() {
    group_->stands(step_, "beginning");
    compare_settings();
    share_state();
    compare_weights();
    reducer_.emplace(*group_, step_run_->parameters(), job_.model().buffers(), settings_.reducer);
    step_run_->set_reducer(&*reducer_);
    observer_.say(fmt::format("ranks: {} x {} samples per step", ranks(),
                              settings_.batch_size * settings_.accumulation));
}

// What must be the same on all ranks for them to take the same steps. All see all, so all say the
// same and end.
void Trainer::compare_settings() {
    const TrainSettings& s = settings_;
    std::vector<std::pair<std::string, std::string>> facts{
        {"training samples", std::to_string(data_->size())},
        {"validation samples", std::to_string(validation_ ? validation_->size() : 0)},
        {"batch_size", std::to_string(s.batch_size)},
        {"gradient_accumulation_steps", std::to_string(s.accumulation)},
        {"seed", std::to_string(s.seed)},
        {"epochs", text_of(s.epochs)},
        {"steps", text_of(s.steps)},
        {"intervals",
         fmt::format("{} {} {} {} {} {} {}", s.log_interval, s.eval_epochs, s.eval_steps,
                     s.checkpoint_epochs, s.checkpoint_steps, s.early_stopping, s.check_ranks)},
        {"precision", std::string(precision_name(s.step.precision))},
        {"buckets", fmt::format("{} {}", s.reducer.bucket_bytes, s.reducer.compress)},
        {"moving mean", fmt::format("{}", s.ema)},
        {"shapes of the model", fmt::format("{:x}", hash_of(model_tensors(), false))},
    };
    std::string mine;
    for (const auto& [name, value] : facts) mine += value + "\n";
    std::vector<std::string> all = group_->texts_of_all(mine);
    std::vector<std::string_view> first = split(all[0], '\n');
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        std::vector<std::string_view> theirs = split(all[rank], '\n');
        for (std::size_t i = 0; i < facts.size(); ++i) {
            if (i < theirs.size() && theirs[i] == first[i]) continue;
            throw UserError(
                {.found = fmt::format("{}: {} on rank {}, and {} on rank 0", facts[i].first,
                                      i < theirs.size() ? theirs[i] : "none", rank, first[i]),
                 .expected = "the same data and settings on all ranks",
                 .fix = "the same configuration and the same files on all hosts"});
        }
    }
}

// Rank 0 has the weights that count: its own fresh ones, or those of a checkpoint.
void Trainer::share_state() {
    torch::NoGradGuard no_gradients;
    Json mine = facts();
    mine.set("step", step_);
    Json given = Json::parse(group_->text_of_first(mine.line()), "rank 0");
    if (!group_->is_first()) apply_facts(given["step"].integer().value_or(0), given);
    NamedTensors tensors = model_tensors();
    for (const auto& item : step_run_->optimizer().state()) tensors.push_back(item);
    if (GradientScaler* scaler = step_run_->scaler()) {
        tensors.emplace_back("", scaler->scale);
        tensors.emplace_back("", scaler->growth);
    }
    if (mean_) tensors.insert(tensors.end(), mean_->state().begin(), mean_->state().end());
    for (auto& [name, tensor] : tensors) {
        torch::Tensor whole = tensor.detach().contiguous();
        group_->broadcast(whole);
        if (!group_->is_first() && whole.data_ptr() != tensor.data_ptr())
            tensor.detach().copy_(whole);
    }
    if (step_ > 0 && !group_->is_first()) step_run_->optimizer().restored();
    saved_at_ = step_ > 0 ? step_ : saved_at_;
    restore_random_of_ranks();
}

// Each rank drops out other units. With as many ranks as the checkpoint was made with, each goes on
// where it was; else the new ones begin from the seed, their number and the step.
void Trainer::restore_random_of_ranks() {
    torch::Tensor own = random_state();
    torch::Tensor all = torch::zeros({ranks(), own.numel()}, torch::kByte);
    bool there = false;
    if (group_->is_first() && static_cast<int>(random_kept_.size()) == ranks() - 1) {
        there = true;
        for (const auto& [name, state] : random_kept_) {
            auto rank = parse_integer(std::string_view(name).substr(name.rfind('k') + 1));
            if (!rank || *rank < 1 || *rank >= ranks() || state.numel() != own.numel())
                there = false;
            else
                all[*rank].copy_(state);
        }
    }
    if (group_->text_of_first(there ? "1" : "0") == "1") {
        group_->broadcast(all);
        if (!group_->is_first()) set_random_state(all[group_->rank()].clone());
    } else if (!group_->is_first()) {
        set_seed(settings_.seed ^ (static_cast<std::uint64_t>(group_->rank()) * kSpread +
                                   static_cast<std::uint64_t>(step_)));
    }
    random_kept_.clear();
}

NamedTensors Trainer::random_of_ranks() {
    torch::Tensor own = random_state();
    torch::Tensor all = torch::zeros({ranks(), own.numel()}, torch::kByte);
    all[group_->rank()].copy_(own);
    group_->sum(all);
    NamedTensors out;
    for (int i = 1; i < ranks(); ++i)
        out.emplace_back(fmt::format("random.rank{}", i), all[i].clone());
    return out;
}

void Trainer::compare_weights() {
    torch::Tensor hashes = torch::zeros({ranks()}, torch::kLong);
    auto* values = hashes.mutable_data_ptr<std::int64_t>();
    values[group_->rank()] = static_cast<std::int64_t>(hash_of(step_run_->parameters(), true));
    group_->sum(hashes);
    std::vector<int> others;
    for (int i = 1; i < ranks(); ++i) {
        if (values[i] != values[0]) others.push_back(i);
    }
    if (others.empty()) return;
    throw MachineError({.found = fmt::format("the weights of {} differ from those of rank 0 after "
                                             "step {}",
                                             ranks_text(others), step_),
                        .expected = "the same weights on all ranks",
                        .fix = "the same build and the same kind of device on all hosts"});
}

// The mean over all ranks, which is the loss of the step; every rank then decides the same.
void Trainer::reduce_losses(ReadLosses& losses) {
    torch::Tensor values = torch::from_blob(
        losses.values.data(), {static_cast<std::int64_t>(losses.values.size())}, torch::kFloat);
    group_->sum(values);
    values.div_(ranks());
}

// Every rank ends for the loss that is no number; the one whose batch it was knows the samples.
void Trainer::share_problem(bool is_mine) {
    std::vector<std::string> all = group_->texts_of_all(is_mine ? problem_->found : "");
    auto named = std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
    if (named == all.end()) return;
    problem_->found = fmt::format("{} (rank {})", *named, named - all.begin());
}

void Trainer::share_evaluation(torch::Tensor& sums, std::int64_t& samples) {
    torch::Tensor all = torch::zeros({sums.numel() + 1}, torch::kDouble);
    all.narrow(0, 0, sums.numel()).copy_(sums);
    all[sums.numel()].fill_(static_cast<double>(samples));
    group_->sum(all);
    sums.copy_(all.narrow(0, 0, sums.numel()));
    samples = static_cast<std::int64_t>(all[sums.numel()].item<double>());
}

// The data goes on where it was: so many samples of the epoch are done, whoever did them. What is
// over of a step of all ranks is done again.
void Trainer::convert_position(int ranks_before) {
    std::int64_t done = position_.batch * ranks_before;  // batches of the epoch, of all ranks
    position_.batch = done / ranks();
    observer_.say(
        fmt::format("the checkpoint is of {} ranks, and there are {} now: a step has {} "
                    "samples instead of {}",
                    ranks_before, ranks(), settings_.batch_size * settings_.accumulation * ranks(),
                    settings_.batch_size * settings_.accumulation * ranks_before));
    if (done % ranks() > 0)
        observer_.say(fmt::format("{} samples of the epoch are seen again",
                                  done % ranks() * settings_.batch_size));
}

// The weights of the last complete step are whole on every rank that is left: the lowest keeps
// them.
void Trainer::save_alone(const RankLost& lost) {
    int writes = 0;
    while (std::ranges::find(lost.ranks(), writes) != lost.ranks().end()) ++writes;
    if (places_.checkpoints.empty() || step_ == first_step_ || group_->rank() != writes) return;
    if (!writer_)
        writer_.emplace(places_.checkpoints, static_cast<std::size_t>(settings_.checkpoint_keep));
    save_checkpoint(false);
    if (ended_ != "failed")
        observer_.say(fmt::format("checkpoint of step {} kept, to resume from", step_));
}

}  // namespace saturate
