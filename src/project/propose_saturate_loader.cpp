// SPDX-License-Identifier: Apache-2.0
// Proposes saturate_gpu.Loader for a DataLoader whose data set it accepts, as the watched run found
// out (python/_saturate_shim/like.py). The edit adds a call around the DataLoader call and an
// import.
#include <fmt/format.h>

#include "project/planner.h"
#include "remedies/catalogue.h"

namespace saturate {

void propose_saturate_loader(Planner& planner, const FactCall& loader) {
    constexpr const char* kSetting = "saturate_loader";
    const WatchedLoader* seen = planner.machine.watched.loader(loader.id);
    if (!seen || !seen->trains || !seen->like.is_object() || !planner.machine.waits_for_data)
        return;
    if (!seen->like["takes"].boolean().value_or(false)) {
        planner.refuse(loader, kSetting,
                       fmt::format("saturate_gpu.Loader does not support it: {}",
                                   seen->like["why"].string().value_or("the reason is unknown")));
        return;
    }
    if (!seen->like["is_installed"].boolean().value_or(false)) {
        planner.refuse(loader, kSetting,
                       "saturate_gpu.Loader supports this data set, but the script's Python does "
                       "not have it: install saturate's wheel there, then run fix again");
        return;
    }
    const FactSource* source = planner.facts.file(loader.file);
    if (!source || !source->after_imports) {
        planner.refuse(loader, kSetting,
                       "there is no safe place for import saturate_gpu in this file");
        return;
    }
    const Remedy* remedy = find_remedy(kSetting);
    FixProposal proposal{
        .setting = kSetting,
        .at = loader,
        .before = fmt::format("{}(...)", loader.short_callee()),
        .after = fmt::format("saturate_gpu.Loader.like({}(...))", loader.short_callee()),
        .reason =
            "the steps wait for images; C++ threads decode them in less "
            "time than worker processes, with other random crops and pixels "
            "within two grey levels",
        .call = loader.id};
    proposal.edits.push_back(
        {loader.file,
         SourceEdit{SourceEdit::Kind::around, loader.span, "", std::string(remedy->source.text)},
         {}});
    proposal.edits.push_back(
        {loader.file,
         SourceEdit{SourceEdit::Kind::after, *source->after_imports, "", "import saturate_gpu"},
         {}});
    planner.propose(std::move(proposal));
}

}  // namespace saturate
