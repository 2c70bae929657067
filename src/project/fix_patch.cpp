// SPDX-License-Identifier: Apache-2.0
#include "project/fix_patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "config/document.h"
#include "project/unified_diff.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargest = 16 << 20;

struct EditsOfFile {
    std::string name;  // the path in the edits
    std::vector<SourceEdit> source;
    std::vector<Edit> config;
};

struct Draft {
    FixPatch patch;
    std::vector<ProjectReader::Check> checks;  // of the sources
};

// The real path of a file within the project: patches do not follow links.
std::string behind_links(const fs::path& folder, const std::string& file) {
    std::error_code error;
    fs::path real = fs::canonical(folder / file, error);
    fs::path inside = real.lexically_relative(fs::canonical(folder, error));
    return real.empty() || inside.empty() || *inside.begin() == ".." ? file : inside.string();
}

// The files after the edits; not yet verified.
Draft draft(const ProjectFacts& facts, const FixQuestion& question,
            const std::vector<const FixProposal*>& proposals) {
    std::map<std::string, EditsOfFile> by_file;
    for (const FixProposal* proposal : proposals) {
        for (const FileEdit& edit : proposal->edits) {
            EditsOfFile& of = by_file[behind_links(question.folder, edit.file)];
            of.name = edit.file;
            // Several proposals may share an import or a worker count.
            if (edit.source && std::ranges::find(of.source, *edit.source) == of.source.end())
                of.source.push_back(*edit.source);
            if (edit.config) of.config.push_back(*edit.config);
        }
    }
    Draft out;
    for (const auto& [file, edits] : by_file) {
        try {
            EditedFile one{.file = file,
                           .before = read_file(question.folder / file, kLargest, "a source"),
                           .after = ""};
            if (!edits.source.empty()) {
                EditedSource done = apply_source_edits(one.before, edits.source);
                if (!done.problem.empty()) {
                    out.patch.problem = done.problem;
                    return out;
                }
                one.after = done.text;
                const FactSource* source = facts.file(edits.name);
                out.checks.push_back(
                    {one.before, edits.source, one.after, source ? source->sha256 : ""});
            } else {
                one.after = apply_edits(Document::parse(one.before, file), edits.config);
            }
            if (one.after != one.before) out.patch.files.push_back(std::move(one));
        } catch (const UserError& error) {
            out.patch.problem = error.problems().front().found;
            return out;
        }
    }
    return out;
}

std::string first_problem(const std::vector<std::string>& answers) {
    for (const std::string& answer : answers)
        if (!answer.empty()) return answer;
    return "";
}

}  // namespace

std::string FixPatch::text() const {
    std::string out;
    for (const EditedFile& file : files) out += unified_diff(file.file, file.before, file.after);
    return out;
}

FixPatch make_patch(ProjectReader& reader, const ProjectFacts& facts, const FixQuestion& question,
                    const std::vector<const FixProposal*>& proposals) {
    Draft drafted = draft(facts, question, proposals);
    if (drafted.patch.problem.empty())
        drafted.patch.problem = first_problem(reader.verify(drafted.checks));
    return drafted.patch;
}

void keep_exact(ProjectReader& reader, const ProjectFacts& facts, const FixQuestion& question,
                FixPlan& plan) {
    // First all together, because each check parses a file and may take a second.
    std::vector<const FixProposal*> all;
    for (const FixProposal& proposal : plan.proposals) all.push_back(&proposal);
    if (make_patch(reader, facts, question, all).problem.empty()) return;
    std::vector<ProjectReader::Check> checks;
    std::vector<std::string> problems;
    std::vector<std::pair<std::size_t, std::size_t>> ranges;  // range in `checks` of each proposal
    for (const FixProposal& proposal : plan.proposals) {
        Draft one = draft(facts, question, {&proposal});
        problems.push_back(one.patch.problem);
        ranges.emplace_back(checks.size(), checks.size() + one.checks.size());
        checks.insert(checks.end(), one.checks.begin(), one.checks.end());
    }
    std::vector<std::string> answers = reader.verify(checks);
    std::vector<FixProposal> kept;
    auto refuse = [&](const FixProposal& proposal, const std::string& why) {
        plan.refused.push_back({proposal.at, proposal.setting, why});
    };
    for (std::size_t i = 0; i < plan.proposals.size(); ++i) {
        auto [begin, end] = ranges[i];
        for (std::size_t check = begin; check < end && problems[i].empty(); ++check)
            problems[i] = answers[check];
        if (problems[i].empty())
            kept.push_back(plan.proposals[i]);
        else
            refuse(plan.proposals[i],
                   fmt::format("the edit cannot be made exactly: {}", problems[i]));
    }
    plan.proposals = std::move(kept);

    all.clear();
    for (const FixProposal& proposal : plan.proposals) all.push_back(&proposal);
    if (make_patch(reader, facts, question, all).problem.empty()) return;
    // Two proposals conflict: the first one wins.
    std::vector<FixProposal> together;
    for (const FixProposal& proposal : plan.proposals) {
        std::vector<const FixProposal*> tried;
        for (const FixProposal& one : together) tried.push_back(&one);
        tried.push_back(&proposal);
        std::string problem = make_patch(reader, facts, question, tried).problem;
        if (problem.empty())
            together.push_back(proposal);
        else
            refuse(proposal, fmt::format("beside the other changes: {}", problem));
    }
    plan.proposals = std::move(together);
}

}  // namespace saturate
