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

# embed_tree(folder root files...): the files, given below root, as `std::span<const EmbeddedFile>
# embedded_<root>()`, by the last part of root's path.
function(embed_tree folder root)
  get_filename_component(name ${root} NAME)
  string(REGEX REPLACE "^_" "" name ${name})
  set(rows)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${root}/${file})
    file(READ ${root}/${file} text)
    string(APPEND rows "        {\"${file}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/embedded/${name}.cpp)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT [=[#include <span>
#include "base/embedded.h"
namespace saturate {
std::span<const EmbeddedFile> embedded_@name@() {
    static constexpr EmbeddedFile kFiles[] = {
@rows@    };
    return kFiles;
}
}  // namespace saturate
]=])
  set(embedded_${folder} ${embedded_${folder}} ${out} PARENT_SCOPE)
endfunction()
