# _saturate_step: the part of the Python shim that runs in every step, one file for every Python from 3.9 on
# (limited API), embedded into the program. Without Python.h the shim does the same in Python, at eight times the cost.
find_package(Python3 REQUIRED COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
set(extension)
if(SATURATE_SANITIZE)
  message(STATUS "run: hooks in Python alone, as an uninstrumented Python cannot load an instrumented extension")
elseif(NOT Python3_Development.Module_FOUND)
  message(STATUS "run: hooks in Python alone, which cost eight times as much per step; python3-dev has the header for the faster ones")
else()
  file(GLOB sources CONFIGURE_DEPENDS python/extension/*.cpp)
  add_library(saturate_step MODULE ${sources})
  target_include_directories(saturate_step PRIVATE src)
  target_include_directories(saturate_step SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
  target_compile_options(saturate_step PRIVATE -O2 -g0 -fno-exceptions -fno-rtti -fno-plt -fvisibility=hidden)
  # Nothing of the C++ library is used: the file must load beside any version of it.
  target_link_options(saturate_step PRIVATE -s -static-libgcc LINKER:--as-needed)
  portable(saturate_step)
  set_target_properties(saturate_step PROPERTIES PREFIX "" OUTPUT_NAME _saturate_step SUFFIX .abi3.so
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python)
  set(extension ${CMAKE_BINARY_DIR}/python/_saturate_step.abi3.so)
endif()
set(out ${CMAKE_BINARY_DIR}/embedded/extension.cpp)
add_custom_command(OUTPUT ${out}
  COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/embed_binary.py embedded_extension ${out} ${extension}
  DEPENDS cmake/embed_binary.py ${extension})
list(APPEND embedded_process ${out})
