# simdjson as an archive of ours: Debian has the shared library alone, which every user would have to install. The one
# source file comes out of the source package of PyPI's pysimdjson (tools/bootstrap simdjson).
include(cmake/cache.cmake)
pypi(pysimdjson pysimdjson_version)
set(simdjson_folder ${saturate_cache}/simdjson-${pysimdjson_version})
if(NOT EXISTS ${simdjson_folder})
  bootstrap(simdjson)
endif()
add_library(archive_simdjson STATIC ${simdjson_folder}/simdjson.cpp)
target_include_directories(archive_simdjson SYSTEM PUBLIC ${simdjson_folder})
target_compile_options(archive_simdjson PRIVATE -w)  # not ours to mend
