// SPDX-License-Identifier: Apache-2.0
#include "pipeline/shared_slabs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/error.h"

namespace saturate {

namespace {

// Creates an anonymous file whose size is sealed, so that a mapping of it never causes SIGBUS.
Descriptor make_file(std::size_t bytes) {
    Descriptor file(::memfd_create("saturate-batch", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
        ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        throw std::bad_alloc();
    return file;
}

}  // namespace

void* SharedSlabs::allocate(std::size_t bytes) {
    Descriptor file = make_file(bytes);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    std::lock_guard lock(mutex_);
    places_[memory] = {next_, bytes};
    fresh_.push_back({next_, std::move(file), bytes});
    ++next_;
    return memory;
}

void SharedSlabs::release(void* memory, std::size_t bytes) noexcept {
    ::munmap(memory, bytes);
    std::lock_guard lock(mutex_);
    places_.erase(memory);
}

std::int64_t SharedSlabs::number_of(const void* memory) const {
    std::lock_guard lock(mutex_);
    auto found = places_.find(memory);
    SATURATE_CHECK(found != places_.end(), "every slab's memory came from here");
    return found->second.number;
}

void SharedSlabs::replace(void* memory) {
    std::lock_guard lock(mutex_);
    Place& place = places_.at(memory);
    Descriptor file = make_file(place.bytes);
    if (::mmap(memory, place.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(),
               0) == MAP_FAILED)
        throw std::bad_alloc();
    place.number = next_;
    fresh_.push_back({next_, std::move(file), place.bytes});
    ++next_;
}

std::vector<SharedSlabs::Fresh> SharedSlabs::take_fresh() {
    std::lock_guard lock(mutex_);
    return std::exchange(fresh_, {});
}

}  // namespace saturate
