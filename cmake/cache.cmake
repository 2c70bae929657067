# Where tools/bootstrap puts what comes from PyPI. pypi(name variable) gives the pinned version.
if(DEFINED ENV{SATURATE_CACHE})
  set(saturate_cache $ENV{SATURATE_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(saturate_cache $ENV{XDG_CACHE_HOME}/saturate)
else()
  set(saturate_cache $ENV{HOME}/.cache/saturate)
endif()

function(pypi name variable)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tools/pypi.txt line REGEX "^${name}==")
  string(REGEX REPLACE ".*==" "" version "${line}")
  set(${variable} ${version} PARENT_SCOPE)
endfunction()

function(bootstrap part)
  message(STATUS "fetching ${part} (tools/bootstrap ${part})")
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/tools/bootstrap ${part} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
