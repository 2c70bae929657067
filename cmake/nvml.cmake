# NVML's header; the library itself comes with the driver and is loaded at run time.
include(cmake/cache.cmake)
pypi(nvidia-nvml-dev nvml_version)
set(nvml_folder ${saturate_cache}/nvml-${nvml_version})
if(NOT EXISTS ${nvml_folder})
  bootstrap(nvml)
endif()
add_library(nvml_header INTERFACE)
target_include_directories(nvml_header SYSTEM INTERFACE ${nvml_folder}/nvidia/cu13/include)
