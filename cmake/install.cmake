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
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded when they are needed, so no tool finds them: the reader of traces must be there, the web server may.
string(REGEX REPLACE "^libsimdjson\\.so\\." "libsimdjson" CPACK_DEBIAN_PACKAGE_DEPENDS "${simdjson_soname}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libmicrohttpd12)
include(CPack)
