// SPDX-License-Identifier: Apache-2.0
#include "support/training.h"

#include "base/file.h"
#include "base/text.h"

namespace saturate {

TrainingFolder::TrainingFolder(std::string binary, const std::string& config)
    : binary_(std::move(binary)) {
    folder_.file("c.yaml", config);
}

Ran TrainingFolder::train(const std::vector<std::string>& words,
                          std::map<std::string, std::string> environment) const {
    std::vector<std::string> command{binary_, "train", "--config", "c.yaml", "--device", "cpu"};
    command.insert(command.end(), words.begin(), words.end());
    return run(command, {.folder = folder_.path(), .environment = std::move(environment)});
}

Json TrainingFolder::json(const std::string& file) const {
    return Json::parse(read_file(folder_.path() / file, 1 << 24, "a record"), file);
}

std::map<std::int64_t, double> TrainingFolder::losses(const std::string& record) const {
    std::map<std::int64_t, double> out;
    std::string text = read_file(folder_.path() / record / "steps.jsonl", 1 << 26, "steps");
    for (std::string_view line : split(text, '\n')) {
        if (line.empty()) continue;
        Json step = Json::parse(line, "steps.jsonl");
        if (auto loss = step["loss"].number()) out[*step["loss_step"].integer()] = *loss;
    }
    return out;
}

}  // namespace saturate
