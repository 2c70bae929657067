# libmicrohttpd inside the program, without GnuTLS: Debian's archive is built with HTTPS, which `serve` does not speak.
# What it needs of GnuTLS to link and to start is ours (cmake/portable/no_tls.cpp) and does nothing; every other reference
# becomes weak, so the linker does not look for it, and nothing calls it. Ours must stay strong: a weak reference takes
# nothing out of an archive, and the program would jump to 0 when it starts.
find_library(microhttpd_file libmicrohttpd.a REQUIRED)
add_library(no_tls OBJECT cmake/portable/no_tls.cpp)
set(microhttpd_archive ${CMAKE_BINARY_DIR}/libmicrohttpd_no_tls.a)
add_custom_command(OUTPUT ${microhttpd_archive} DEPENDS ${microhttpd_file} no_tls $<TARGET_OBJECTS:no_tls> VERBATIM
  COMMAND ${CMAKE_OBJCOPY} --wildcard --weaken-symbol=!gnutls_global_* --weaken-symbol=!gnutls_malloc
          --weaken-symbol=gnutls_* ${microhttpd_file} ${microhttpd_archive}
  COMMAND ${CMAKE_AR} q ${microhttpd_archive} $<TARGET_OBJECTS:no_tls>)
add_custom_target(microhttpd_no_tls DEPENDS ${microhttpd_archive})
add_library(archive_microhttpd INTERFACE)
add_dependencies(archive_microhttpd microhttpd_no_tls)
target_link_libraries(archive_microhttpd INTERFACE ${microhttpd_archive})
