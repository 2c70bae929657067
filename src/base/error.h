// SPDX-License-Identifier: Apache-2.0
// The three kinds of failure that end a command. Thrown anywhere, caught in app/main.cpp and at a
// thread's edge. An expected failure (an unreadable counter, a broken image) is a value instead.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace saturate {

// The place of a mistake. Line and column count from 1; 0 means unknown. Empty file: no place.
struct Place {
    std::string file;
    int line = 0;
    int column = 0;

    [[nodiscard]] std::string text() const;  // "job.yaml:14:3", "job.yaml", or ""
    bool operator==(const Place&) const = default;
};

struct Problem {
    Place where;
    std::string found;
    std::string expected;  // may be empty
    std::string fix;       // may be empty

    // "error: job.yaml:14: ...\n  expected: ...\n  fix:      ...", without a final newline.
    [[nodiscard]] std::string text() const;
};

class Failure : public std::exception {
  public:
    explicit Failure(std::vector<Problem> problems);
    [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }
    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

  private:
    std::vector<Problem> problems_;
    std::string text_;
};

// A mistake of the user: bad argument, YAML, missing file, broken trace. Exit code 2.
class UserError : public Failure {
  public:
    explicit UserError(Problem problem) : Failure({std::move(problem)}) {}
    explicit UserError(std::vector<Problem> problems) : Failure(std::move(problems)) {}
};

// A fault of the machine: no driver, no GPU, disk full. Exit code 3.
class MachineError : public Failure {
  public:
    explicit MachineError(Problem problem) : Failure({std::move(problem)}) {}
};

// A bug of ours: an internal promise is broken. Exit code 70.
class Bug : public std::exception {
  public:
    Bug(const char* file, int line, const std::string& why);
    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

  private:
    std::string text_;
};

}  // namespace saturate

#define SATURATE_CHECK(condition, why)                                  \
    do {                                                                \
        if (!(condition)) throw saturate::Bug(__FILE__, __LINE__, why); \
    } while (false)
