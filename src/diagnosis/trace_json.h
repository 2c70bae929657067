// SPDX-License-Identifier: Apache-2.0
// Parses a run of events into the event table with simdjson, without building a tree. Only
// trace_json.cpp includes simdjson.
#pragma once

#include <cstddef>
#include <memory>

#include "diagnosis/trace_build.h"

namespace saturate {

class EventParser {
  public:
    static constexpr std::size_t kPadding = 64;  // bytes that must be readable after the text

    EventParser();
    ~EventParser();

    // Parses an array of events, "[{...},{...}]". Returns false if `text` is not exactly one array;
    // the builder may then hold some of the events and must be rewound.
    bool parse(const char* text, std::size_t length, TraceBuilder& builder);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
