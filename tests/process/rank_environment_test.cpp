// SPDX-License-Identifier: Apache-2.0
#include "process/rank_environment.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace saturate {
namespace {

std::optional<RankPlace> place(const std::map<std::string, std::string>& values) {
    return rank_place([&](const std::string& name) -> std::optional<std::string> {
        auto found = values.find(name);
        return found == values.end() ? std::nullopt : std::optional(found->second);
    });
}

std::string problem(const std::map<std::string, std::string>& values) {
    try {
        (void)place(values);
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

TEST(RankEnvironmentTest, NothingSetIsOneProcess) {
    EXPECT_FALSE(place({}));
    EXPECT_FALSE(place({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
    EXPECT_FALSE(place({{"MASTER_ADDR", "host"}, {"MASTER_PORT", "1234"}}));
}

TEST(RankEnvironmentTest, ReadsWhatTorchrunSets) {
    EXPECT_EQ(place({{"RANK", "5"},
                     {"WORLD_SIZE", "8"},
                     {"LOCAL_RANK", "1"},
                     {"LOCAL_WORLD_SIZE", "4"},
                     {"MASTER_ADDR", "node1"},
                     {"MASTER_PORT", "29400"},
                     {"TORCHELASTIC_RUN_ID", "none"},
                     {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                     {"TORCHELASTIC_RESTART_COUNT", "2"}}),
              (RankPlace{.rank = 5,
                         .count = 8,
                         .local_rank = 1,
                         .local_count = 4,
                         .address = "node1",
                         .port = 29400,
                         .store_is_served = true,
                         .prefix = "/worker/attempt_2",
                         .launcher = "torchrun"}));
}

TEST(RankEnvironmentTest, ReadsStepsOfSlurm) {
    EXPECT_EQ(place({{"SLURM_PROCID", "5"},
                     {"SLURM_NTASKS", "7"},
                     {"SLURM_STEP_NUM_TASKS", "7"},
                     {"SLURM_LOCALID", "1"},
                     {"SLURM_NODEID", "2"},
                     {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                     {"SLURM_STEP_NODELIST", "gpu[07-09,12]"},
                     {"SLURM_JOB_ID", "123"},
                     {"SLURM_STEP_ID", "4"}}),
              (RankPlace{.rank = 5,
                         .count = 7,
                         .local_rank = 1,
                         .local_count = 2,
                         .address = "gpu07",
                         .port = 20000 + 123 * 17 + 4,
                         .launcher = "slurm"}));
}

// There is one process in a batch script, whatever was asked for.
TEST(RankEnvironmentTest, ABatchScriptOfSlurmIsOneProcess) {
    EXPECT_FALSE(place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}}));
}

TEST(RankEnvironmentTest, ReadsOpenMpiAndMpich) {
    RankPlace expected{.rank = 1, .count = 2, .local_rank = 1, .local_count = 2, .launcher = "mpi"};
    EXPECT_EQ(place({{"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
              expected);
    EXPECT_EQ(place({{"PMI_RANK", "1"},
                     {"PMI_SIZE", "2"},
                     {"MPI_LOCALRANKID", "1"},
                     {"MPI_LOCALNRANKS", "2"}}),
              expected);
}

TEST(RankEnvironmentTest, TheUsersAddressAndPortWin) {
    auto found = place({{"SLURM_PROCID", "0"},
                        {"SLURM_STEP_NUM_TASKS", "2"},
                        {"SLURM_STEP_NODELIST", "a,b"},
                        {"MASTER_ADDR", "10.0.0.7"},
                        {"MASTER_PORT", "4242"}});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->address, "10.0.0.7");
    EXPECT_EQ(found->port, 4242);
}

TEST(RankEnvironmentTest, SaysWhatContradicts) {
    const std::string fix =
        "\n  fix:      unset it to train in one process; docs/parallel.md explains how to start "
        "several";
    EXPECT_EQ(problem({{"RANK", "1"}}),
              "error: RANK is set and WORLD_SIZE is not\n"
              "  expected: both, as torchrun sets them, or neither" +
                  fix);
    EXPECT_EQ(problem({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              "error: RANK is 2 and WORLD_SIZE is 2\n"
              "  expected: a rank below the number of ranks" +
                  fix);
    EXPECT_EQ(problem({{"RANK", "one"}, {"WORLD_SIZE", "2"}}),
              "error: RANK is \"one\"\n"
              "  expected: a whole number from 0 to 1000000" +
                  fix);
    EXPECT_EQ(
        problem(
            {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_PORT", "70000"}}),
        "error: MASTER_PORT is 70000\n"
        "  expected: a port from 1 to 65535" +
            fix);
    EXPECT_EQ(problem({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
              "error: 2 ranks on several hosts, and no MASTER_ADDR\n"
              "  expected: the host of rank 0 in MASTER_ADDR, the same for all ranks\n"
              "  fix:      mpirun -x MASTER_ADDR=$(hostname) ...");
}

TEST(RankEnvironmentTest, FindsTheFirstHostOfAList) {
    EXPECT_EQ(first_host("gpu07"), "gpu07");
    EXPECT_EQ(first_host("gpu07,gpu08"), "gpu07");
    EXPECT_EQ(first_host("login,gpu[1-4]"), "login");
    EXPECT_EQ(first_host("gpu[007-012,020]"), "gpu007");
    EXPECT_EQ(first_host("gpu[3,5]-ib,other"), "gpu3-ib");
    EXPECT_EQ(first_host("gpu[12]"), "gpu12");
}

TEST(RankEnvironmentTest, CountsTheTasksOfANode) {
    EXPECT_EQ(tasks_of_node("4", 0), 4);
    EXPECT_EQ(tasks_of_node("2(x3),1", 2), 2);
    EXPECT_EQ(tasks_of_node("2(x3),1", 3), 1);
    EXPECT_EQ(tasks_of_node("2(x3),1", 4), std::nullopt);
    EXPECT_EQ(tasks_of_node("many", 0), std::nullopt);
}

}  // namespace
}  // namespace saturate
