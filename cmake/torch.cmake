# LibTorch out of the PyPI wheel, as hand-made targets: the wheel's own find_package(Torch) goes looking for
# a CUDA toolkit. Set TORCH_SITE to use another folder that holds torch/ (a site-packages).
include(cmake/cache.cmake)
pypi(torch torch_version)
set(TORCH_SITE "" CACHE PATH "folder that holds torch/ and nvidia/; empty: what tools/bootstrap installed")
if(NOT SATURATE_TORCH)
  return()
endif()
set(torch_site ${TORCH_SITE})
foreach(attempt first second)
  foreach(kind cuda cpu)
    if(NOT torch_site AND EXISTS ${saturate_cache}/torch-${torch_version}-${kind})
      set(torch_site ${saturate_cache}/torch-${torch_version}-${kind})
    endif()
  endforeach()
  if(NOT torch_site AND SATURATE_TORCH STREQUAL "AUTO")
    set(SATURATE_TORCH OFF)  # for this run of CMake: the cache goes on saying AUTO
    message(STATUS "without what trains: LibTorch is not there yet (tools/bootstrap torch)")
    return()
  endif()
  if(NOT torch_site)
    bootstrap(torch)
  endif()
endforeach()
if(NOT EXISTS ${torch_site}/torch/lib/libtorch_cpu.so)
  message(FATAL_ERROR "no LibTorch in ${torch_site}: run tools/bootstrap torch, set -DTORCH_SITE=<site-packages>, "
                      "or leave out what trains with -DSATURATE_TORCH=OFF")
endif()

foreach(name c10 torch_cpu)
  add_library(${name}_so SHARED IMPORTED)
  set_target_properties(${name}_so PROPERTIES IMPORTED_LOCATION ${torch_site}/torch/lib/lib${name}.so)
endforeach()
add_library(torch_cpu INTERFACE)
# Behind the system's folders, because the wheel also ships an fmt of its own, without its library.
target_compile_options(torch_cpu INTERFACE
  "SHELL:-idirafter ${torch_site}/torch/include" "SHELL:-idirafter ${torch_site}/torch/include/torch/csrc/api/include")
target_compile_definitions(torch_cpu INTERFACE _GLIBCXX_USE_CXX11_ABI=1 USE_C10D_GLOO USE_DISTRIBUTED)
# Without it classes of LibTorch's headers (RecordFunction) have members that its libraries do not know.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
if(NOT CMAKE_CXX_FLAGS_${build_type} MATCHES NDEBUG)
  target_compile_definitions(torch_cpu INTERFACE NDEBUG)
endif()
if(SATURATE_SANITIZE MATCHES undefined)
  target_compile_options(torch_cpu INTERFACE -fno-sanitize=vptr)  # its libraries keep their type information
endif()
if(SATURATE_SANITIZE MATCHES thread)
  target_compile_options(torch_cpu INTERFACE -Wno-tsan)  # its headers have fences, which this tool cannot follow, and says so
endif()
target_link_libraries(torch_cpu INTERFACE torch_cpu_so c10_so)
# What its libraries need in turn they find through the rpath, at run time; an installed binary keeps it.
target_link_options(torch_cpu INTERFACE LINKER:--allow-shlib-undefined
  LINKER:-rpath,${torch_site}/torch/lib LINKER:-rpath,${torch_site}/nvidia/cu13/lib)
# The wheel has Gloo in its library but not its headers; behind everything, so that real ones win.
set_source_files_properties(src/engine/process_group.cpp PROPERTIES
  COMPILE_OPTIONS "-idirafter;${PROJECT_SOURCE_DIR}/cmake/gloo")
