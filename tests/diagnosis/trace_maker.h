// SPDX-License-Identifier: Apache-2.0
// Makes traces by hand for tests of the rules: events in microseconds, as the profiler writes them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "diagnosis/trace_read.h"

namespace saturate {

class TraceMaker {
  public:
    void host(std::string_view category, std::string_view name, int start, int length, int tid = 1,
              std::string_view args = "") {
        add(fmt::format(
            R"({{"ph":"X","cat":"{}","name":"{}","pid":9,"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
            category, name, tid, start, length, args));
    }
    void op(std::string_view name, int start, int length, std::string_view args = "") {
        host("cpu_op", name, start, length, 1, args);
    }
    void step(int number, int start, int length) {
        host("user_annotation", fmt::format("ProfilerStep#{}", number), start, length);
    }
    void call(std::string_view name, int start, int length, int id = 0) {
        host("cuda_runtime", name, start, length, 1,
             id ? fmt::format(R"("correlation":{})", id) : "");
    }
    void gpu(std::string_view category, std::string_view name, int start, int length, int id,
             int stream = 7, int device = 0, int blocks = 200) {
        add(fmt::format(
            R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
            R"("args":{{"device":{},"stream":{},"correlation":{},"grid":[{},1,1],"bytes":1000000}}}})",
            category, name, device, stream, start, length, device, stream, id, blocks));
    }
    // Adds a launch of 5 us at `launch` and its kernel at `start`.
    void kernel(std::string_view name, int launch, int start, int length, int blocks = 200) {
        call("cudaLaunchKernel", launch, 5, ++id_);
        gpu("kernel", name, start, length, id_, 7, 0, blocks);
    }
    void copy(std::string_view name, int launch, int start, int length, int stream = 7) {
        call("cudaMemcpyAsync", launch, 5, ++id_);
        gpu("gpu_memcpy", name, start, length, id_, stream);
    }
    int next_id() { return ++id_; }
    void rank(int rank, int size, std::string_view backend = "nccl") {
        head_ += fmt::format(R"("distributedInfo":{{"backend":"{}","rank":{},"world_size":{}}},)",
                             backend, rank, size);
    }
    void device(std::string_view name, int major, int sms) {
        head_ += fmt::format(
            R"("deviceProperties":[{{"id":0,"name":"{}","computeMajor":{},"computeMinor":0,"numSms":{}}}],)",
            name, major, sms);
    }
    [[nodiscard]] std::string text() const {
        return fmt::format("{{{}\"traceEvents\":[{}]}}", head_, events_);
    }
    [[nodiscard]] Trace trace() const { return parse_trace(text(), "made.json"); }

  private:
    void add(const std::string& event) { events_ += (events_.empty() ? "" : ",\n") + event; }
    std::string head_;
    std::string events_;
    int id_ = 0;
};

}  // namespace saturate
