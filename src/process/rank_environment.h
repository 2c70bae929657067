// SPDX-License-Identifier: Apache-2.0
// Finds the place of this process in a data-parallel job from the variables of torchrun, Slurm, MPI
// or our own launcher. A pure function of the environment.
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
    std::string prefix;            // prefix of the keys in that store
    std::string launcher;          // "torchrun", "slurm", "mpi", "saturate", "environment"

    bool operator==(const RankPlace&) const = default;
};

using Environment = std::function<std::optional<std::string>(const std::string&)>;

// The environment of this process.
[[nodiscard]] Environment own_environment();

// Returns nothing for a process outside of any job. Throws UserError if the variables contradict
// each other.
[[nodiscard]] std::optional<RankPlace> rank_place(const Environment& environment);

// "gpu[07-09,12],login" -> "gpu07": the first host of Slurm's host list.
[[nodiscard]] std::string first_host(const std::string& list);
// "2(x3),1" at node 3 -> 1: the number of tasks on a node in Slurm's list, or nothing if absent.
[[nodiscard]] std::optional<int> tasks_of_node(const std::string& list, int node);

}  // namespace saturate
