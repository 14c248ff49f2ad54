# What an installed Octavo consists of, and the Debian package of it. Fonts come from Debian's packages, the model from
# whoever installs one; what the program links to is found by dpkg-shlibdeps.
include(GNUInstallDirs)
set(desktop_folder ${CMAKE_SOURCE_DIR}/packaging/desktop)

# The icon in pixels, from the shapes that the window draws its own from.
add_executable(octavo_write_icons ${desktop_folder}/write_icons.cc app/window/platform/window_icon.cc app/window/platform/png.cc)
target_link_libraries(octavo_write_icons PRIVATE octavo_flags)
set(icon_folder ${CMAKE_BINARY_DIR}/icons)
set(icon_extents 16 24 32 48 64 128 256)
set(icon_files)
foreach(extent ${icon_extents})
  list(APPEND icon_files ${icon_folder}/${extent}.png)
endforeach()
file(MAKE_DIRECTORY ${icon_folder})
add_custom_command(OUTPUT ${icon_files} COMMAND octavo_write_icons ${icon_folder} DEPENDS octavo_write_icons)

# Whose code is inside the program, in their words.
set(copyright_file ${CMAKE_BINARY_DIR}/copyright)
set(copyright_parts ${desktop_folder}/copyright.txt ${imgui_folder}/LICENSE.txt ${implot_folder}/LICENSE
    ${sentencepiece_folder}/LICENSE ${sentencepiece_folder}/third_party/protobuf-lite/LICENSE
    ${sentencepiece_folder}/third_party/darts_clone/LICENSE ${OCTAVO_XGRAMMAR}/NOTICE ${OCTAVO_XGRAMMAR}/LICENSE
    ${OCTAVO_XGRAMMAR}/3rdparty/dlpack/LICENSE)
set(picojson ${OCTAVO_XGRAMMAR}/3rdparty/picojson/picojson.h)  # its licence is the beginning of its only file
add_custom_command(OUTPUT ${copyright_file} COMMAND cat ${copyright_parts} > ${copyright_file}
                   COMMAND head -n 27 ${picojson} >> ${copyright_file} DEPENDS ${copyright_parts} ${picojson})

add_custom_target(octavo_package_files DEPENDS octavo ${icon_files} ${copyright_file})

install(TARGETS octavo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${desktop_folder}/octavo.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
install(FILES assets/octavo.svg DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
foreach(extent ${icon_extents})
  install(FILES ${icon_folder}/${extent}.png RENAME octavo.png
          DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/${extent}x${extent}/apps)
endforeach()
install(FILES ${copyright_file} DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME octavo)
set(CPACK_PACKAGE_VENDOR Octavo)
set(CPACK_PACKAGE_CONTACT "The Octavo maintainers <maintainers@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "local chat with a language model that shows its memory at work")
set(CPACK_PACKAGE_DESCRIPTION "Octavo runs a language model on this machine and keeps the model's keys and values
in small blocks, which chats that begin alike share. Its window holds the chats,
compares answers, and draws every block of memory while it is used.
.
Models are GGUF files of architecture llama; none is part of this package.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# libgl1: GLFW opens it when it runs, which dpkg-shlibdeps cannot see.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "fonts-inter, fonts-jetbrains-mono, libgl1")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libgl1-mesa-dri, xdg-utils, fonts-noto-core, fonts-noto-cjk, fonts-noto-color-emoji")
include(CPack)
