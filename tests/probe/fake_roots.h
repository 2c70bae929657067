// SPDX-License-Identifier: Apache-2.0
// A fake /proc, /sys and /dev for the tests of probe/.
#pragma once

#include <string>

#include "probe/machine.h"
#include "support/run.h"

namespace saturate {

class FakeRoots {
  public:
    FakeRoots() {
        for (const char* folder : {"proc", "sys", "dev"})
            std::filesystem::create_directories(folder_.path() / folder);
    }
    FakeRoots& with(const std::string& name, const std::string& content) {
        folder_.file(name, content);
        return *this;
    }
    [[nodiscard]] ProbeRoots roots() const {
        return {folder_.path() / "proc", folder_.path() / "sys", folder_.path() / "dev"};
    }

    // Adds the cgroup mounts of systemd (only version 2) or of older distributions (version 1).
    FakeRoots& mount_v2(const std::string& root = "/") {
        return with("proc/self/mountinfo",
                    "22 27 0:21 / /proc rw,relatime - proc proc rw\n31 23 0:28 " + root +
                        " /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    }
    FakeRoots& mount_v1(const std::string& root = "/") {
        return with("proc/self/mountinfo",
                    "31 23 0:28 " + root +
                        " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
                        "32 23 0:29 " + root +
                        " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
                        "33 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    }

  private:
    TemporaryFolder folder_;
};

}  // namespace saturate
