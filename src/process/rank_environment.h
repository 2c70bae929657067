// SPDX-License-Identifier: Apache-2.0
// Which process of a data-parallel job this is, as torchrun, Slurm, MPI or our own launcher say in
// the environment. A pure function of the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace saturate {

struct RankPlace {
    int rank = 0;
    int count = 1;
    int local_rank = 0;   // on this host
    int local_count = 1;  // processes on this host
    std::string address = "127.0.0.1";
    int port = 29500;
    bool store_is_served = false;  // by torchrun's agent
    std::string prefix;            // of keys in that store
    std::string launcher;          // "torchrun", "slurm", "mpi", "saturate", "environment"

    bool operator==(const RankPlace&) const = default;
};

using Environment = std::function<std::optional<std::string>(const std::string&)>;

// This process's own.
[[nodiscard]] Environment own_environment();

// Nothing for a process on its own. Throws UserError when the variables contradict each other.
[[nodiscard]] std::optional<RankPlace> rank_place(const Environment& environment);

// "gpu[07-09,12],login" -> "gpu07": the first host of a list as Slurm writes it.
[[nodiscard]] std::string first_host(const std::string& list);
// "2(x3),1" at node 3 -> 1: what Slurm says of the tasks of a node; nothing when it does not say.
[[nodiscard]] std::optional<int> tasks_of_node(const std::string& list, int node);

}  // namespace saturate
