# cmake --install, and a Debian package (cpack): programs, manual pages and completions made from the table of
# verbs, documents and the reference configurations.
include(GNUInstallDirs)
set(pages ${CMAKE_BINARY_DIR}/pages)
add_executable(saturate_pages app/pages/main.cpp)
target_link_libraries(saturate_pages PRIVATE app_shared)
add_custom_command(OUTPUT ${pages}/.written
  COMMAND saturate_pages ${pages}
  COMMAND ${CMAKE_COMMAND} -E touch ${pages}/.written
  DEPENDS saturate_pages)
add_custom_target(pages ALL DEPENDS ${pages}/.written)

install(TARGETS saturate RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${pages}/saturate.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME saturate)
install(FILES ${pages}/_saturate DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs configs DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(SKBUILD)
  # A wheel: the program goes into the environment's bin, pages and completions beside it, and the licences of what is
  # linked into it beside our own.
  install(TARGETS saturate RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
  install(DIRECTORY ${pages}/man1 DESTINATION ${SKBUILD_DATA_DIR}/share/man COMPONENT wheel)
  install(FILES ${pages}/saturate.bash DESTINATION ${SKBUILD_DATA_DIR}/share/bash-completion/completions RENAME saturate COMPONENT wheel)
  install(FILES ${pages}/_saturate DESTINATION ${SKBUILD_DATA_DIR}/share/zsh/site-functions COMPONENT wheel)
  foreach(package libdeflate-dev libfmt-dev libjpeg62-turbo-dev libjpeg-turbo8-dev libmicrohttpd-dev libncurses-dev libsqlite3-dev
      libtomlplusplus-dev libwebp-dev libyaml-cpp-dev libzstd-dev nlohmann-json3-dev zlib1g-dev)
    if(EXISTS /usr/share/doc/${package}/copyright)  # libjpeg has another name on Ubuntu
      install(FILES /usr/share/doc/${package}/copyright DESTINATION ${SKBUILD_METADATA_DIR}/licenses/linked
        RENAME ${package}.txt COMPONENT wheel)
    endif()
  endforeach()
  # simdjson's source comes without a file of its own for it.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/simdjson.txt CONTENT
    "simdjson, by its authors (https://simdjson.org): Apache License 2.0, whose text is in LICENSE beside this folder.\n")
  install(FILES ${CMAKE_BINARY_DIR}/simdjson.txt DESTINATION ${SKBUILD_METADATA_DIR}/licenses/linked COMPONENT wheel)
endif()

# The package leaves out what trains: LibTorch is no Debian package.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME saturate)
set(CPACK_PACKAGE_CONTACT "The saturate project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "says why a GPU is idle, fixes it, and proves it")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL Unspecified)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(SATURATE_PORTABLE)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28)")  # dpkg-shlibdeps would ask for the builder's
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
