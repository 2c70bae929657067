// SPDX-License-Identifier: Apache-2.0
#include "engine/compile_trace.h"

#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <sstream>

#include "base/json.h"
#include "base/text.h"

namespace saturate {

namespace {

using torch::Tensor;
namespace jit = torch::jit;

Json spec_of(const Tensor& tensor) {
    std::string type;
    switch (tensor.scalar_type()) {
        case torch::kFloat:
            type = "float32";
            break;
        case torch::kBFloat16:
            type = "bfloat16";
            break;
        case torch::kLong:
            type = "int64";
            break;
        case torch::kByte:
            type = "uint8";
            break;
        default:
            break;
    }
    return Json::object({{"shape", Json::array_of(tensor.sizes())},
                         {"strides", Json::array_of(tensor.strides())},
                         {"type", type}});
}

// The compiler unrolls recurrent layers into thousands of operators: minutes to build, and slower
// than the layer's own loop (6.3 against 8.0 steps/s, LSTM of 128 over 60 steps).
bool is_recurrent(const jit::Graph& graph) {
    for (const jit::Node* node : graph.nodes()) {
        std::string kind = node->kind().toQualString();
        if (kind == "aten::lstm" || kind == "aten::gru" || kind.starts_with("aten::rnn_"))
            return true;
    }
    return false;
}

std::shared_ptr<jit::Graph> trace(Job& job, const TensorBatch& batch, const jit::Stack& inputs) {
    auto run = [&](const jit::Stack& given) {
        TensorBatch fields;
        for (std::size_t i = given.size() - batch.size(); i < given.size(); ++i)
            fields.push_back(given[i].toTensor());
        return jit::Stack{job.loss(fields)};
    };
    auto no_name = [](const Tensor&) { return std::string(); };
    return jit::tracer::trace(inputs, run, no_name, /*strict=*/true, /*force_outplace=*/false)
        .first->graph;
}

std::string as_module(const std::shared_ptr<jit::Graph>& graph) {
    jit::Module module("Loss");
    graph->insertInput(0, "self")->setType(module._ivalue()->type());
    auto* function = module._ivalue()->compilation_unit()->create_function(
        c10::QualifiedName(*module.type()->name(), "forward"), graph);
    module.type()->addMethod(function);
    std::ostringstream out;
    module.save(out);
    return out.str();
}

}  // namespace

std::string first_line(const std::string& text) {
    constexpr std::size_t kMost = 300;
    std::string line(split(text, '\n')[0]);
    if (line.size() <= kMost) return line;
    line.resize(kMost);
    line += "...";
    return line;
}

TracedLoss trace_loss(Job& job, const TensorBatch& batch) {
    std::vector<Tensor> buffers = job.model().buffers(), copies;
    for (const Tensor& buffer : buffers) copies.push_back(buffer.clone());
    TracedLoss out;
    jit::Stack inputs;
    Json specs = Json::array();
    for (const auto& list : {job.model().parameters(), buffers, batch}) {
        for (const Tensor& tensor : list) {
            inputs.emplace_back(tensor);
            specs.add(spec_of(tensor));
            if (specs.items().back()["type"].string() == "")
                out.problem = "an input of a type that is not float32, bfloat16, int64 or uint8";
        }
    }
    if (!out.problem.empty()) return out;
    out.parameters = job.model().parameters().size();
    out.inputs = specs.line();
    try {
        std::shared_ptr<jit::Graph> graph = trace(job, batch, inputs);
        if (is_recurrent(*graph)) {
            out.problem = "recurrent layers are faster as they are";
        } else {
            out.module = as_module(graph);
        }
    } catch (const std::exception& error) {
        jit::tracer::abandon();
        out.problem = fmt::format("the loss cannot be traced: {}", first_line(error.what()));
    }
    torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(copies[i]);
    return out;
}

}  // namespace saturate
