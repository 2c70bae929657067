// SPDX-License-Identifier: Apache-2.0
// F32: settings of a configuration that were not in force in the run, as the record of the Python
// process shows. Also removes advice for settings that are already in force.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/settings.h"
#include "diagnosis/cure.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/python_json.h"

namespace saturate {
namespace {

bool has_autocast(const Json& python) {
    for (const Json& one : python["autocast"].items()) {
        if (one["enabled"].boolean().value_or(false)) return true;
    }
    if (python["scaler_steps"].integer().value_or(0) > 0) return true;
    // A model with parameters in half precision needs no autocast.
    for (const Json& model : python["models"].items()) {
        for (const Json& type : model["types"].items()) {
            std::string name = type.string().value_or("");
            if (name == "torch.bfloat16" || name == "torch.float16") return true;
        }
    }
    return false;
}

bool is_compiled(const Json& python) {
    if (python["compile"]["graphs"].integer().value_or(0) > 0) return true;
    return std::ranges::any_of(python["models"].items(), [](const Json& model) {
        return model["compiled"].boolean().value_or(false);
    });
}

bool has_fused(const Json& python) {
    return std::ranges::any_of(python["optimizers"].items(), [](const Json& one) {
        return one["fused"].boolean().value_or(false);
    });
}

// Returns a loader with workers that the script creates again and again on the same line, or null.
// Its workers start anew each time.
const Json* made_anew(const Json& python) {
    const std::vector<Json>& loaders = python["loaders"].items();
    for (std::size_t i = 0; i < loaders.size(); ++i) {
        if (loaders[i]["num_workers"].integer().value_or(0) == 0 || loaders[i]["site"].is_null())
            continue;
        for (std::size_t k = i + 1; k < loaders.size(); ++k) {
            if (where_of(loaders[k]["site"]) == where_of(loaders[i]["site"])) return &loaders[i];
        }
    }
    return nullptr;
}

class InForce {
  public:
    InForce(const RunRecord& record, const Settings& settings, std::vector<Finding>& out)
        : record_(record), python_(record.python), settings_(settings), out_(out) {}

    void check() {
        check_switches();
        check_loader();
    }

  private:
    void add(const Value& value, std::string shown, std::string fix) {
        Finding finding{
            .id = "F32", .count = 1, .confidence = Confidence::high, .sources = {"run record"}};
        finding.where = value.place.text();
        finding.evidence = fmt::format("{} says {}: {}, but {}", value.place.text(),
                                       path_text(value.path), value.text, shown);
        finding.fix = std::move(fix);
        out_.push_back(finding);
    }
    // Returns the value if the file turns the setting on, or null.
    [[nodiscard]] const Value* asked(Setting setting) const {
        const Value* value = settings_.get(setting);
        return value && !value->left_alone && value->flag.value_or(false) ? value : nullptr;
    }
    void check_flag(Setting setting, const char* flag, std::string_view fix) {
        const Value* value = asked(setting);
        if (value && python_["flags"][flag].boolean() == false)
            add(*value, fmt::format("{} is off in the run", flag), std::string(fix));
    }

    void check_switches() {
        const Value* precision = settings_.get(Setting::precision);
        auto wish = settings_.precision();
        bool wants_half = wish && wish->on && wish->type != Precision::fp32;
        if (precision && !precision->left_alone && wants_half && !has_autocast(python_))
            add(*precision, "torch.autocast was never entered",
                "with torch.autocast(device_type, torch.bfloat16): around forward and loss");
        if (const Value* compile = asked(Setting::compile); compile && !is_compiled(python_))
            add(*compile, "nothing was compiled", "model = torch.compile(model)");
        if (is_on_gpu(python_)) {
            check_flag(Setting::tf32, "tf32_matmul", "torch.set_float32_matmul_precision('high')");
            check_flag(Setting::cudnn_benchmark, "cudnn_benchmark",
                       "torch.backends.cudnn.benchmark = True");
        }
        const Value* fused = asked(Setting::fused_optimizer);
        if (fused && !python_["optimizers"].items().empty() && !has_fused(python_))
            add(*fused, "no optimizer was made with fused=True",
                "pass fused=True to the optimizer");
    }

    void check_loader() {
        Json loader = training_loader(python_);
        if (!loader.is_object()) return;
        check_number(Setting::num_workers, loader, "num_workers");
        check_batch(loader);
        const Value* persistent = asked(Setting::persistent_workers);
        const Json* anew = persistent ? made_anew(python_) : nullptr;
        if (anew)
            add(*persistent,
                fmt::format(
                    "the loader at {} is created anew in every epoch, and so are its workers",
                    where_of((*anew)["site"])),
                "create the DataLoader once, before the epochs");
    }

    void check_number(Setting setting, const Json& loader, const char* key) {
        const Value* value = settings_.get(setting);
        if (!value || value->left_alone || value->numbers.size() != 1) return;
        auto in_force = loader[key].integer();
        if (!in_force || static_cast<double>(*in_force) == value->numbers[0]) return;
        std::string served = workers_served(*value);
        add(*value, fmt::format("the loader at {} has {}", where_of(loader["site"]), *in_force),
            served == std::to_string(*in_force)
                ? fmt::format("{}: {}", path_text(value->path), served)
                : fmt::format("pass it on: DataLoader({}={})", key, served));
    }

    // Returns the number in the file, or the smaller one that fits the cores (F30).
    [[nodiscard]] std::string workers_served(const Value& value) const {
        Facts facts = record_facts(record_);
        if (value.numbers[0] <= facts.cores_per_process()) return value.text;
        facts.now["num_workers"] = value.text;
        for (const SettingChange& setting : cures("F30", facts)) {
            if (setting.key == "num_workers") return setting.value;
        }
        return value.text;
    }

    // The file may mean the batch of one process, of all processes or of several accumulated steps.
    void check_batch(const Json& loader) {
        const Value* value = settings_.get(Setting::batch_size);
        auto in_force = loader["batch_size"].number();
        if (!value || value->left_alone || value->numbers.size() != 1 || !in_force ||
            *in_force <= 1)  // ready-made batches
            return;
        double world = std::max(1.0, python_["world_size"].number().value_or(1));
        double steps = settings_.number(Setting::gradient_accumulation_steps).value_or(1);
        for (double factor : {1.0, world, steps, world * steps}) {
            if (std::abs(*in_force * factor - value->numbers[0]) < 0.5) return;
        }
        add(*value,
            fmt::format("the loader at {} makes batches of {}", where_of(loader["site"]),
                        *in_force),
            fmt::format("pass it on: DataLoader(batch_size={})", value->text));
    }

    const RunRecord& record_;
    const Json& python_;
    const Settings& settings_;
    std::vector<Finding>& out_;
};

bool is_in_force(const Json& python, const Json& loader, const SettingChange& setting) {
    auto on = [&](const char* key) { return loader[key].boolean().value_or(false); };
    if (setting.key == "pin_memory") return on("pin_memory");
    if (setting.key == "persistent_workers") return on("persistent_workers");
    if (setting.key == "compile") return is_compiled(python);
    if (setting.key == "fused_optimizer") return has_fused(python);
    if (setting.key == "precision") return has_autocast(python);
    if (setting.key == "num_workers" || setting.key == "prefetch_factor") {
        auto now = loader[setting.key.c_str()].integer();
        return now && std::to_string(*now) == setting.value;
    }
    return false;
}

}  // namespace

void settings_in_force(const RunRecord& record, const Document& document,
                       std::vector<Finding>& findings) {
    if (!record.python.is_object() || record.python["steps"].integer().value_or(0) == 0) return;
    Settings settings = Settings::read(document);
    InForce(record, settings, findings).check();
}

void drop_what_is_in_force(const RunRecord& record, std::vector<Finding>& findings) {
    const Json& python = record.python;
    bool is_crowded = found(findings, "F30") != nullptr;
    Json loader = python.is_object() ? training_loader(python) : Json();
    auto now = loader["num_workers"].integer();
    for (Finding& finding : findings) {
        if (finding.settings.empty() || finding.id == "F30" || finding.id == "F32") continue;
        std::string there;
        std::erase_if(finding.settings, [&](const SettingChange& setting) {
            // Do not advise more workers if there are already too many.
            auto wanted = setting.key == "num_workers" ? std::atoll(setting.value.c_str()) : 0;
            bool is_more = is_crowded && wanted > now.value_or(0);
            bool is_there = python.is_object() && is_in_force(python, loader, setting);
            if (is_there) there += (there.empty() ? "" : ", ") + setting.key;
            return is_more || is_there;
        });
        bool had_workers =
            is_crowded && finding.fix_text().find("num_workers=") != std::string::npos;
        if (had_workers) {
            finding.fix =
                "not more workers, because the cores are full (F30): store smaller or decoded "
                "samples, or give the job more cores";
            finding.patch.clear();
        } else if (!there.empty() && finding.settings.empty()) {
            finding.fix = there + " is already in effect; a trace shows what is left";
            finding.patch.clear();
        }
    }
}

}  // namespace saturate
