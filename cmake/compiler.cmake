# Language level, warnings, sanitizers, ccache and mold where they are there.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;$<$<BOOL:${SATURATE_WERROR}>:-Werror>;-Wno-missing-field-initializers>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of g++ 12 on std::string: overlap (GCC bug 105651), and designated initialisers of a
  # temporary that throws (GCC bug 105562). valgrind and the asan preset look for the real thing.
  # Through a precompiled header it also tells its alarms about the library's own code, which are false too: sizes
  # that std::string has ruled out before (GCC bugs 105329, 105651).
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
endif()
if(SATURATE_SANITIZE)
  add_compile_options(-fsanitize=${SATURATE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SATURATE_SANITIZE})
  if(SATURATE_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined)  # what it finds fails the test
  endif()
  if(SATURATE_SANITIZE STREQUAL thread)
    # Fences against another process's writes: this tool sees one process only, and says so.
    set_source_files_properties(src/telemetry/step_ring.cpp PROPERTIES COMPILE_OPTIONS -Wno-tsan)
  endif()
endif()
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this sloppiness it does not keep what is compiled with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
