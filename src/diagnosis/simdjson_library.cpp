// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/simdjson_library.h"

#include <dlfcn.h>
#include <simdjson.h>

#include "base/error.h"

namespace saturate {
namespace {

using Implementation = simdjson::internal::atomic_ptr<const simdjson::implementation>;
using Active = Implementation& (*)();

Active find_active() {
    constexpr const char* kName = "_ZN8simdjson25get_active_implementationEv";
    void* library = dlopen(SATURATE_SIMDJSON, RTLD_NOW | RTLD_LOCAL);
    void* symbol = library ? dlsym(library, kName) : nullptr;
    if (!symbol) {
        const char* why = dlerror();
        throw MachineError({.where = {},
                            .found = why ? why : "no reason given",
                            .expected = SATURATE_SIMDJSON ", which reads traces",
                            .fix = "install the package libsimdjson14"});
    }
    return reinterpret_cast<Active>(symbol);
}

Active active() {
    static const Active found = find_active();
    return found;
}

}  // namespace

void load_simdjson() { active(); }

}  // namespace saturate

// The one function of the library that its header calls by name; the rest is reached through it.
simdjson::internal::atomic_ptr<const simdjson::implementation>&
simdjson::get_active_implementation() {
    return saturate::active()();
}
