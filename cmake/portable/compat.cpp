// SPDX-License-Identifier: Apache-2.0
// What code compiled beside a newer glibc asks for and glibc 2.28 does not have. In portable builds
// alone.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <ctime>

namespace {

// The loaded object that holds `address`, as the unwinder wants to know it.
struct ObjectSearch {
    ElfW(Addr) address;
    dl_find_object* found;
};

int look_into(dl_phdr_info* object, size_t, void* data) {
    auto* search = static_cast<ObjectSearch*>(data);
    ElfW(Addr) begin = 0;
    ElfW(Addr) end = 0;
    ElfW(Addr) frames = 0;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        ElfW(Addr) start = object->dlpi_addr + segment.p_vaddr;
        bool holds_it = search->address >= start && search->address < start + segment.p_memsz;
        if (segment.p_type == PT_LOAD && holds_it) {
            begin = start;
            end = start + segment.p_memsz;
        }
        if (segment.p_type == PT_GNU_EH_FRAME) frames = start;
    }
    if (!end || !frames) return 0;
    *search->found = {};
    search->found->dlfo_map_start = reinterpret_cast<void*>(begin);
    search->found->dlfo_map_end = reinterpret_cast<void*>(end);
    search->found->dlfo_eh_frame = reinterpret_cast<void*>(frames);
    return 1;
}

}  // namespace

extern "C" {

// glibc 2.32. Always "there may be other threads", so reference counts are atomic.
char __libc_single_threaded = 0;

// glibc 2.35, for the unwinder of libgcc_eh.a, which has no other way when it was built beside it.
int _dl_find_object(void* address, dl_find_object* found) {
    ObjectSearch search{reinterpret_cast<ElfW(Addr)>(address), found};
    return ::dl_iterate_phdr(look_into, &search) ? 0 : -1;
}

// glibc 2.30. The C library's own where there is one; else a wait on the wall clock, as libstdc++
// did before.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
    using Wait = decltype(&pthread_cond_clockwait);
    static const auto kReal = reinterpret_cast<Wait>(::dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
    if (kReal) return kReal(condition, mutex, clock, until);
    constexpr long kSecond = 1'000'000'000;
    timespec now;
    timespec wall;
    ::clock_gettime(clock, &now);
    ::clock_gettime(CLOCK_REALTIME, &wall);
    wall.tv_sec += until->tv_sec - now.tv_sec;
    wall.tv_nsec += until->tv_nsec - now.tv_nsec;
    if (wall.tv_nsec < 0) {
        wall.tv_nsec += kSecond;
        --wall.tv_sec;
    } else if (wall.tv_nsec >= kSecond) {
        wall.tv_nsec -= kSecond;
        ++wall.tv_sec;
    }
    return ::pthread_cond_timedwait(condition, mutex, &wall);
}
}
