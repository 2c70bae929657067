# libsaturate_cuda.so: our CUDA code, loaded at run time, so that one program serves machines with and without a
# driver. Asked for without a toolkit, configuration stops.
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "SATURATE_CUDA needs the CUDA toolkit, and no nvcc was found: put it on PATH or set CUDACXX")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75 80 86 89 90 120)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
set(CMAKE_CUDA_STANDARD 17)  # the newest that nvcc offers with CMake 3.25
file(GLOB cuda_sources CONFIGURE_DEPENDS cuda/*.cu)
if(SATURATE_TORCH)
  # nvcc does not take the compiler options of LibTorch's headers, which the kernels do not need.
  add_library(saturate_cuda_kernels OBJECT ${cuda_sources})
  target_include_directories(saturate_cuda_kernels PRIVATE . src)
  # The trainer's device. Our own calls and LibTorch's share one CUDA runtime: the one beside LibTorch.
  add_library(saturate_cuda SHARED cuda/backend.cpp cuda/collectives.cpp src/engine/wrap_batch.cpp src/base/error.cpp src/base/fmt_library.cpp
    $<TARGET_OBJECTS:saturate_cuda_kernels>)
  target_include_directories(saturate_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  # ProcessGroupNCCL's header wants NCCL's; the library is the one that LibTorch's CUDA part loads.
  find_path(nccl_include nccl.h HINTS ${torch_site}/nvidia/nccl/include ${CUDAToolkit_INCLUDE_DIRS})
  if(NOT nccl_include)
    message(FATAL_ERROR "SATURATE_CUDA needs nccl.h: pip install the wheel's nvidia-nccl-cu13 into ${torch_site}, or set "
                        "-Dnccl_include=<folder>")
  endif()
  target_include_directories(saturate_cuda SYSTEM PRIVATE ${nccl_include})
  set_source_files_properties(cuda/collectives.cpp PROPERTIES COMPILE_DEFINITIONS "USE_CUDA;USE_C10D_NCCL")
  foreach(name torch_cuda c10_cuda)
    add_library(${name}_so SHARED IMPORTED)
    set_target_properties(${name}_so PROPERTIES IMPORTED_LOCATION ${torch_site}/torch/lib/lib${name}.so)
  endforeach()
  # LibTorch's CUDA part registers itself when it is loaded: nothing of ours names it.
  target_link_libraries(saturate_cuda PRIVATE torch_cpu
    "-Wl,--push-state,--no-as-needed" torch_cuda_so c10_cuda_so "-Wl,--pop-state"
    ${torch_site}/nvidia/cu13/lib/libcudart.so.13)
  set_target_properties(saturate_cuda PROPERTIES LINKER_LANGUAGE CXX)
else()
  add_library(saturate_cuda SHARED ${cuda_sources})
  target_link_libraries(saturate_cuda PRIVATE CUDA::cudart_static)
endif()
target_include_directories(saturate_cuda PRIVATE . src)
set_target_properties(saturate_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
install(TARGETS saturate_cuda LIBRARY DESTINATION libexec/saturate)
