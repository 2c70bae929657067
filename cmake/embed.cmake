# embed(folder file): makes the file part of the binary as `std::string_view embedded_<stem>()`,
# declared by the reader in src/<folder>, so that an installed binary needs no data folder.
function(embed folder file)
  get_filename_component(stem ${file} NAME_WE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(out ${CMAKE_BINARY_DIR}/embedded/${stem}.cpp)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [=[#include <string_view>
namespace saturate {
std::string_view embedded_@stem@() {
    return R"embedded(@text@)embedded";
}
}  // namespace saturate
]=])
  set(embedded_${folder} ${embedded_${folder}} ${out} PARENT_SCOPE)
endfunction()
