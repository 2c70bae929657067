# SATURATE_PORTABLE: programs that run wherever glibc is 2.28 or later, as LibTorch's own wheels do. They are compiled as
# always and linked against stand-ins for that C library, which offer its symbols in their old versions; the few that it
# does not have are in cmake/portable/compat.cpp. What is missing then fails at the link, not on a user's machine.
include(cmake/cache.cmake)
pypi(ziglang zig_version)
set(glibc_stand_ins ${saturate_cache}/glibc-2.28-zig-${zig_version})
if(SATURATE_PORTABLE AND NOT EXISTS ${glibc_stand_ins})
  bootstrap(glibc)
endif()

# portable(target): for what is handed to users and either holds the C++ library itself or uses none.
function(portable target)
  if(SATURATE_PORTABLE)
    link_for_old_glibc(${target})
  endif()
endfunction()

function(link_for_old_glibc target)
  target_link_options(${target} PRIVATE -B${glibc_stand_ins} -L${glibc_stand_ins})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/portable/compat.cpp)
  endif()
endfunction()
