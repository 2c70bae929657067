# libsaturate_cuda.so: the trainer's GPU, loaded at run time, so that one program serves machines with and without a
# driver. It has no kernel of its own, so it needs neither nvcc nor a toolkit: headers and libraries come with
# LibTorch's own wheels. SATURATE_CUDA=AUTO builds it wherever they are; ON makes it an error that one is missing.
#
# The headers are beside LibTorch where it was fetched with CUDA; elsewhere tools/bootstrap cuda fetches them alone.
set(CUDA_SITE "" CACHE PATH "folder that holds nvidia/ with CUDA's headers; empty: found")
set(cuda_site ${CUDA_SITE})
foreach(site ${torch_site} ${saturate_cache}/cuda-headers-torch-${torch_version})
  if(NOT cuda_site AND EXISTS ${site}/nvidia/cu13/include/cublas_v2.h AND EXISTS ${site}/nvidia/cu13/include/crt/host_defines.h)
    set(cuda_site ${site})
  endif()
endforeach()
if(NOT cuda_site)
  set(cuda_site ${torch_site})
endif()
set(cuda_include ${cuda_site}/nvidia/cu13/include)
set(nccl_include ${cuda_site}/nvidia/nccl/include)
set(cuda_missing)
foreach(file ${cuda_include}/cuda_runtime_api.h ${cuda_include}/crt/host_defines.h ${cuda_include}/cublas_v2.h
    ${cuda_include}/cusparse.h ${cuda_include}/cusolverDn.h ${nccl_include}/nccl.h ${torch_site}/torch/lib/libtorch_cuda.so
    ${torch_site}/nvidia/cu13/lib/libcudart.so.13)
  if(NOT EXISTS ${file})
    list(APPEND cuda_missing ${file})
  endif()
endforeach()
if(cuda_missing AND EXISTS ${torch_site}/torch/lib/libtorch_hip.so)
  message(STATUS "LibTorch in ${torch_site} is a ROCm build: what trains is built for the CPU; AMD's GPUs are watched, not trained on")
endif()
if(cuda_missing)
  list(JOIN cuda_missing "\n  " cuda_missing)
  if(SATURATE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SATURATE_CUDA=ON, and these files are missing (tools/bootstrap torch fetches them where a driver "
                        "is, tools/bootstrap cuda elsewhere):\n  ${cuda_missing}")
  endif()
  message(STATUS "no CUDA part, as these files are missing:\n  ${cuda_missing}")
  add_custom_target(saturate_cuda)  # so that tools/build may name it everywhere
  return()
endif()
file(GLOB sources CONFIGURE_DEPENDS cuda/*.cpp)
list(FILTER sources EXCLUDE REGEX "/nvml")
# Our own calls and LibTorch's share one CUDA runtime: the one beside LibTorch.
add_library(saturate_cuda SHARED ${sources} src/engine/wrap_batch.cpp src/engine/nccl_environment.cpp src/engine/random_state.cpp src/engine/lent_memory.cpp
  src/engine/stream_backend.cpp src/engine/tf32.cpp src/pipeline/batch.cpp src/pipeline/slab.cpp src/base/error.cpp src/base/text.cpp src/base/fmt_library.cpp)
target_include_directories(saturate_cuda PRIVATE . src)
target_include_directories(saturate_cuda SYSTEM PRIVATE ${cuda_include} ${cuda_include}/cccl ${nccl_include})
set_source_files_properties(cuda/collectives.cpp PROPERTIES COMPILE_DEFINITIONS "USE_CUDA;USE_C10D_NCCL")
foreach(name torch_cuda c10_cuda)
  add_library(${name}_so SHARED IMPORTED)
  set_target_properties(${name}_so PROPERTIES IMPORTED_LOCATION ${torch_site}/torch/lib/lib${name}.so)
endforeach()
# LibTorch's CUDA part registers itself when it is loaded: nothing of ours names it.
target_link_libraries(saturate_cuda PRIVATE torch_cpu
  "-Wl,--push-state,--no-as-needed" torch_cuda_so c10_cuda_so "-Wl,--pop-state"
  ${torch_site}/nvidia/cu13/lib/libcudart.so.13)
set_target_properties(saturate_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
install(TARGETS saturate_cuda LIBRARY DESTINATION libexec/saturate COMPONENT engine)
