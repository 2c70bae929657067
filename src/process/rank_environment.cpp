// SPDX-License-Identifier: Apache-2.0
#include "process/rank_environment.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

namespace {

constexpr int kRanksMost = 1'000'000;

[[noreturn]] void throw_variable(const std::string& found, const std::string& expected) {
    throw UserError(
        {.found = found,
         .expected = expected,
         .fix =
             "unset it to train in one process; docs/parallel.md explains how to start several"});
}

// One of the launchers' variables as a whole number, or nothing if it is not set.
std::optional<int> whole(const Environment& environment, const std::string& name) {
    auto text = environment(name);
    if (!text || text->empty()) return std::nullopt;
    auto value = parse_integer(*text);
    if (!value || *value < 0 || *value > kRanksMost) {
        throw_variable(fmt::format("{} is {}", name, in_quotes(*text)),
                       fmt::format("a whole number from 0 to {}", kRanksMost));
    }
    return static_cast<int>(*value);
}

// Variable names of one kind of launcher.
struct LauncherNames {
    const char* launcher;
    const char* rank;
    const char* count;
    const char* local_rank;
    const char* local_count;
};
constexpr LauncherNames kKinds[] = {
    {"environment", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // Set in a step (srun) only: a batch script or a shell of salloc is one process for all tasks.
    {"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};

std::optional<RankPlace> numbers(const Environment& environment) {
    for (const LauncherNames& names : kKinds) {
        auto rank = whole(environment, names.rank), count = whole(environment, names.count);
        bool is_plain = names.launcher == std::string_view("environment");
        if (is_plain && rank.has_value() != count.has_value()) {
            throw_variable(fmt::format("{} is set and {} is not", rank ? names.rank : names.count,
                                       rank ? names.count : names.rank),
                           "both, as torchrun sets them, or neither");
        }
        if (!rank || !count) continue;
        if (*count < 1 || *rank >= *count) {
            throw_variable(
                fmt::format("{} is {} and {} is {}", names.rank, *rank, names.count, *count),
                "a rank below the number of ranks");
        }
        RankPlace out{.rank = *rank, .count = *count, .launcher = names.launcher};
        out.local_rank = whole(environment, names.local_rank).value_or(0);
        out.local_count =
            *names.local_count ? whole(environment, names.local_count).value_or(1) : 1;
        return out;
    }
    return std::nullopt;
}

void add_slurm(const Environment& environment, RankPlace& place) {
    if (auto list = environment("SLURM_STEP_TASKS_PER_NODE")) {
        int node = whole(environment, "SLURM_NODEID").value_or(0);
        place.local_count = tasks_of_node(*list, node).value_or(1);
    }
    auto hosts = environment("SLURM_STEP_NODELIST");
    if (!hosts) hosts = environment("SLURM_JOB_NODELIST");
    if (hosts) place.address = first_host(*hosts);
    // The same port on all ranks, and another one for each step: several jobs may share a host.
    int job = whole(environment, "SLURM_JOB_ID").value_or(0);
    int step = whole(environment, "SLURM_STEP_ID").value_or(0);
    place.port = 20'000 + (job * 17 + step) % 10'000;
}

}  // namespace

Environment own_environment() {
    return [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
    };
}

std::string first_host(const std::string& list) {
    std::size_t bracket = list.find('['), comma = list.find(',');
    if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
    std::size_t end = list.find_first_of(",-]", bracket + 1);
    std::size_t close = list.find(']', bracket);
    if (end == std::string::npos || close == std::string::npos) return list;
    std::size_t after = list.find(',', close);
    return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) +
           list.substr(close + 1, after == std::string::npos ? after : after - close - 1);
}

std::optional<int> tasks_of_node(const std::string& list, int node) {
    std::int64_t before = 0;
    for (std::string_view part : split(list, ',')) {
        std::int64_t times = 1;
        if (std::size_t open = part.find("(x"); open != std::string_view::npos) {
            times = parse_integer(part.substr(open + 2, part.size() - open - 3)).value_or(0);
            part = part.substr(0, open);
        }
        auto tasks = parse_integer(part);
        if (!tasks || times < 1) return std::nullopt;
        before += times;
        if (node < before) return static_cast<int>(*tasks);
    }
    return std::nullopt;
}

std::optional<RankPlace> rank_place(const Environment& environment) {
    std::optional<RankPlace> place = numbers(environment);
    if (!place || place->count == 1) return std::nullopt;
    if (place->launcher == "slurm") add_slurm(environment, *place);
    place->local_count = std::max(1, std::max(place->local_count, place->local_rank + 1));
    bool one_host = place->local_count == place->count;
    if (auto address = environment("MASTER_ADDR"); address && !address->empty()) {
        place->address = *address;
    } else if (!one_host && place->launcher != "slurm") {
        throw UserError(
            {.found = fmt::format("{} ranks on several hosts, and no MASTER_ADDR", place->count),
             .expected = "the host of rank 0 in MASTER_ADDR, the same for all ranks",
             .fix = "mpirun -x MASTER_ADDR=$(hostname) ..."});
    }
    if (auto port = whole(environment, "MASTER_PORT")) {
        if (*port < 1 || *port > 65535)
            throw_variable(fmt::format("MASTER_PORT is {}", *port), "a port from 1 to 65535");
        place->port = *port;
    }
    if (environment("TORCHELASTIC_RUN_ID")) place->launcher = "torchrun";
    if (environment("SATURATE_LAUNCHER")) place->launcher = "saturate";
    if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") {
        place->store_is_served = true;
        place->prefix =
            "/worker/attempt_" + environment("TORCHELASTIC_RESTART_COUNT").value_or("0");
    }
    return place;
}

}  // namespace saturate
