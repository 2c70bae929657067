// SPDX-License-Identifier: Apache-2.0
#include "engine/reducer.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/text.h"
#include "engine/view_like.h"

namespace saturate {

namespace {

struct Bucket {
    torch::Tensor flat;  // gradients, one after the other
    torch::Tensor wire;  // what is sent: the same memory, or a bf16 copy
    std::vector<std::size_t> members;
    std::size_t missing = 0;
    std::unique_ptr<PendingCollective> sum;
    std::int64_t begin_ns = 0;
};

// Buffers of one type, sent as one tensor.
struct BufferSet {
    std::vector<torch::Tensor> buffers;
    torch::Tensor flat;
    std::vector<torch::Tensor> places;  // views of the buffers in `flat`
    std::unique_ptr<PendingCollective> under_way;

    void allocate() {
        std::int64_t size = 0;
        for (const torch::Tensor& buffer : buffers) size += buffer.numel();
        flat = torch::zeros({size}, buffers[0].options().requires_grad(false));
        std::int64_t offset = 0;
        for (const torch::Tensor& buffer : buffers) {
            places.push_back(flat.narrow(0, offset, buffer.numel()).view(buffer.sizes()));
            offset += buffer.numel();
        }
    }
};

}  // namespace

// In reverse order: the gradients of the last parameters are ready first.
std::vector<std::vector<std::size_t>> divide_into_buckets(const NamedTensors& parameters,
                                                          const ReducerSettings& settings) {
    std::vector<std::vector<std::size_t>> buckets;
    std::int64_t bytes = 0, limit = settings.first_bucket_bytes;
    for (std::size_t k = parameters.size(); k-- > 0;) {
        const torch::Tensor& parameter = parameters[k].second;
        auto own = static_cast<std::int64_t>(parameter.nbytes());
        bool other_kind =
            !buckets.empty() && parameters[buckets.back()[0]].second.dtype() != parameter.dtype();
        if (buckets.empty() || other_kind || bytes + own > limit) {
            if (!buckets.empty()) limit = settings.bucket_bytes;
            buckets.emplace_back();
            bytes = 0;
        }
        buckets.back().push_back(k);
        bytes += own;
    }
    return buckets;
}

struct GradientReducer::Impl {
    struct Hook final : torch::autograd::PostAccumulateGradHook {
        Hook(Impl& owner, std::size_t number) : impl(owner), i(number) {}
        void operator()(const torch::Tensor&) override { impl.ready(i); }
        Impl& impl;
        std::size_t i;
    };

    Impl(ProcessGroup& together, const NamedTensors& named, std::vector<torch::Tensor> buffers,
         const ReducerSettings& wanted)
        : group(together), settings(wanted) {
        torch::NoGradGuard no_gradients;
        for (const auto& [name, parameter] : named) {
            names.push_back(name);
            parameters.push_back(parameter);
        }
        bucket_of.resize(parameters.size());
        views.resize(parameters.size());
        wire_views.resize(parameters.size());
        is_ready.resize(parameters.size());
        for (std::vector<std::size_t>& members : divide_into_buckets(named, settings)) {
            for (std::size_t k : members) bucket_of[k] = buckets.size();
            buckets.emplace_back().members = std::move(members);
            allocate(buckets.back());
            bytes += static_cast<std::int64_t>(buckets.back().wire.nbytes());
        }
        for (std::size_t i = 0; i < parameters.size(); ++i)
            torch::autograd::impl::set_post_acc_grad_hooks(parameters[i],
                                                           std::make_unique<Hook>(*this, i));
        std::map<torch::ScalarType, BufferSet> by_type;
        for (torch::Tensor& buffer : buffers) {
            if (buffer.numel() > 0) by_type[buffer.scalar_type()].buffers.push_back(buffer);
        }
        for (auto& [type, set] : by_type) {
            set.allocate();
            bytes += static_cast<std::int64_t>(set.flat.nbytes());
            buffer_sets.push_back(std::move(set));
        }
        // Allocates everything that a step needs up front: running out of memory between two
        // collectives would leave the other ranks waiting.
        flags = torch::zeros({4}, torch::kFloat);
        failures = torch::zeros({1}, torch::kFloat);
        used = torch::zeros({static_cast<std::int64_t>(parameters.size())}, torch::kFloat);
        bytes += static_cast<std::int64_t>(flags.nbytes());
    }

    ~Impl() {
        for (torch::Tensor& parameter : parameters)
            torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
    }

    void allocate(Bucket& bucket) {
        std::int64_t size = 0;
        for (std::size_t k : bucket.members) size += parameters[k].numel();
        torch::TensorOptions kind = parameters[bucket.members[0]].options().requires_grad(false);
        bucket.flat = torch::zeros({size}, kind);
        bool shrinks = settings.compress && bucket.flat.scalar_type() == torch::kFloat;
        bucket.wire = shrinks ? torch::zeros({size}, kind.dtype(torch::kBFloat16)) : bucket.flat;
        std::int64_t offset = 0;
        for (std::size_t k : bucket.members) {
            views[k] = view_like(bucket.flat, offset, parameters[k]);
            wire_views[k] = view_like(bucket.wire, offset, parameters[k]);
            offset += parameters[k].numel();
        }
    }

    void begin() {
        for (Bucket& bucket : buckets) bucket.missing = bucket.members.size();
        std::fill(is_ready.begin(), is_ready.end(), false);
        twice.reset();
        next = 0;
        armed = true;
    }

    void ready(std::size_t i) {
        if (!armed) return;
        torch::NoGradGuard no_gradients;
        if (is_ready[i]) {
            twice = i;
            return;
        }
        is_ready[i] = true;
        torch::Tensor& gradient = parameters[i].mutable_grad();
        if (gradient.data_ptr() != wire_views[i].data_ptr()) wire_views[i].copy_(gradient);
        // The gradient is in the bucket now, so its own memory is free for the remaining layers.
        if (!settings.compress) gradient = views[i];
        --buckets[bucket_of[i]].missing;
        while (next < buckets.size() && buckets[next].missing == 0) launch(buckets[next++]);
    }

    // Called in bucket order on every rank, because collectives are matched by their order.
    void launch(Bucket& bucket) {
        bucket.begin_ns = now_ns();
        bucket.sum = group.start_sum(bucket.wire);
    }

    void start_buffers() {
        for (BufferSet& set : buffer_sets) {
            for (std::size_t i = 0; i < set.buffers.size(); ++i)
                set.places[i].copy_(set.buffers[i]);
            set.under_way = group.start_broadcast(set.flat);
        }
    }

    void finish_buffers() {
        for (BufferSet& set : buffer_sets) {
            set.under_way->wait();
            set.under_way.reset();
            if (group.is_first()) continue;
            for (std::size_t i = 0; i < set.buffers.size(); ++i)
                set.buffers[i].copy_(set.places[i]);
        }
    }

    ReducerAnswer finish(bool failed, const StopWish& wish) {
        torch::NoGradGuard no_gradients;
        std::int64_t begin_ns = now_ns();
        if (!armed) begin();  // memory ran out before the last micro-batch
        std::vector<std::size_t> unused = fill_up(failed);
        armed = false;
        while (next < buckets.size()) launch(buckets[next++]);
        start_buffers();
        float* words = flags.mutable_data_ptr<float>();
        words[0] = failed ? 1 : 0;
        words[1] = wish.interrupted ? 1 : 0;
        words[2] = wish.timed_out ? 1 : 0;
        words[3] = unused.empty() ? 0 : 1;
        // The host is at most one step ahead, and the device has this step to work on meanwhile. So
        // the ranks agree that the sums of the step before are complete everywhere, and a lost rank
        // is noticed here.
        settle();
        std::unique_ptr<PendingCollective> agreed = group.start_sum(flags);
        DeviceCollectives* device = group.device();
        if (device) device->mark_waiting(mark);
        for (Bucket& bucket : buckets) bucket.sum->wait();
        finish_buffers();
        if (device) device->mark_waited(mark);
        agreed->wait();

        ReducerAnswer answer{.any_failed = words[0] > 0,
                             .stop = {.interrupted = words[1] > 0, .timed_out = words[2] > 0}};
        answer.exposed_ns = now_ns() - begin_ns;
        answer.total_ns = time_under_way(begin_ns, begin_ns + answer.exposed_ns);
        answer.collectives = static_cast<std::int64_t>(buckets.size() + buffer_sets.size() + 1);
        answer.bytes = bytes;
        if (device) answer.mark = mark++;
        for (Bucket& bucket : buckets) {
            bucket.sum.reset();
            if (settings.compress && bucket.wire.data_ptr() != bucket.flat.data_ptr())
                bucket.flat.copy_(bucket.wire);
        }
        if (answer.any_failed) return answer;
        if (twice) {
            throw UserError({.found = fmt::format("the gradient of {} came twice in one backward "
                                                  "pass",
                                                  names[*twice]),
                             .expected = "one gradient per parameter and pass",
                             .fix = "gradient_checkpointing: false, or no weights shared between "
                                    "its parts"});
        }
        for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = views[i];
        if (words[3] > 0) drop_unused(unused);
        return answer;
    }

    void settle() {
        if (group.device() && mark > 0) group.await_device(mark - 1);
    }

    // Copies the gradients that the last backward pass did not report: they are from earlier
    // micro-batches, or missing.
    std::vector<std::size_t> fill_up(bool failed) {
        std::vector<std::size_t> unused;
        for (std::size_t i = 0; i < parameters.size() && !failed; ++i) {
            if (is_ready[i]) continue;
            const torch::Tensor& gradient = parameters[i].grad();
            if (gradient.defined()) {
                if (gradient.data_ptr() != wire_views[i].data_ptr()) wire_views[i].copy_(gradient);
            } else {
                wire_views[i].zero_();
                unused.push_back(i);
            }
        }
        return unused;
    }

    bool any_failed(bool failed) {
        failures.mutable_data_ptr<float>()[0] = failed ? 1 : 0;
        group.sum(failures);
        return failures.const_data_ptr<float>()[0] > 0;
    }

    // A parameter without a gradient on any rank stays unchanged, as in a single process: no weight
    // decay, no momentum.
    void drop_unused(const std::vector<std::size_t>& unused) {
        float* counts = used.mutable_data_ptr<float>();
        std::fill_n(counts, parameters.size(), 1.0F);
        for (std::size_t i : unused) counts[i] = 0;
        group.sum(used);
        std::vector<std::string> left_out;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (counts[i] > 0) continue;
            parameters[i].mutable_grad().reset();
            left_out.push_back(names[i]);
        }
        if (noted || left_out.empty()) return;
        noted = true;
        note = fmt::format("no gradient for {}: it is not part of the loss and stays unchanged",
                           join(left_out, ", "));
    }

    // Length of the union of all [begin, done] spans and of the wait at the end.
    [[nodiscard]] std::int64_t time_under_way(std::int64_t wait_begin,
                                              std::int64_t wait_end) const {
        std::vector<std::pair<std::int64_t, std::int64_t>> spans{{wait_begin, wait_end}};
        for (const Bucket& bucket : buckets) {
            if (bucket.sum->done_ns() == 0) return 0;
            spans.emplace_back(bucket.begin_ns, bucket.sum->done_ns());
        }
        std::ranges::sort(spans);
        std::int64_t total = 0, until = 0;
        for (const auto& [begin, end] : spans) {
            total += std::max<std::int64_t>(0, end - std::max(begin, until));
            until = std::max(until, end);
        }
        return total;
    }

    ProcessGroup& group;
    ReducerSettings settings;
    std::vector<std::string> names;
    std::vector<torch::Tensor> parameters, views, wire_views;
    std::vector<std::size_t> bucket_of;
    std::vector<bool> is_ready;
    std::vector<Bucket> buckets;
    std::vector<BufferSet> buffer_sets;
    // All on the host. `flags`: failed, interrupted, timed out, has unused parameters. `failures`:
    // for any_failed(). `used`: which parameters have a gradient.
    torch::Tensor flags, failures, used;
    std::int64_t bytes = 0;  // of all collectives of a step
    std::int64_t mark = 0;   // of the next step's collectives on the device
    std::size_t next = 0;
    bool armed = false, noted = false;
    std::optional<std::size_t> twice;
    std::string note;
};

GradientReducer::GradientReducer(ProcessGroup& group, const NamedTensors& parameters,
                                 std::vector<torch::Tensor> buffers,
                                 const ReducerSettings& settings)
    : impl_(std::make_unique<Impl>(group, parameters, std::move(buffers), settings)) {}
GradientReducer::~GradientReducer() = default;

int GradientReducer::ranks() const { return impl_->group.count(); }
void GradientReducer::begin() { impl_->begin(); }
ReducerAnswer GradientReducer::finish(bool failed, const StopWish& wish) {
    return impl_->finish(failed, wish);
}
void GradientReducer::settle() { impl_->settle(); }
bool GradientReducer::any_failed(bool failed) { return impl_->any_failed(failed); }
std::string GradientReducer::take_note() { return std::exchange(impl_->note, ""); }

}  // namespace saturate
