// SPDX-License-Identifier: Apache-2.0
// The door to simdjson: parses a run of events straight into the event table, without a tree
// between.
#pragma once

#include <cstddef>
#include <memory>

#include "diagnosis/trace_build.h"

namespace saturate {

class EventParser {
  public:
    static constexpr std::size_t kPadding = 64;  // bytes that must be readable behind the text

    EventParser();
    ~EventParser();

    // `text` is an array of events, "[{...},{...}]". False when it is not one from its first to its
    // last byte; the builder may then hold some of it and must be rewound.
    bool parse(const char* text, std::size_t length, TraceBuilder& builder);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
