# The Debian package: `cpack -G DEB` in a build directory makes holdfast_VERSION-1~RELEASE_ARCHITECTURE.deb.
# What it depends on: the libraries that the programs are linked with (dpkg-shlibdeps finds them), libcurl, which they
# load when they need it, and the names in deploy/packages, so that they stand in one place.
file(STRINGS /etc/os-release release REGEX "^VERSION_CODENAME=")
string(REGEX REPLACE "^VERSION_CODENAME=" "" release "${release}")

# holdfast_package_names(<variable> <purpose>): as the list of a control file.
function(holdfast_package_names variable purpose)
  execute_process(COMMAND sh -c ". '${CMAKE_SOURCE_DIR}/deploy/packages' && holdfast_packages ${purpose}"
    OUTPUT_VARIABLE names OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "[ \n]+" ", " names "${names}")
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()
holdfast_package_names(fetching fetching)
holdfast_package_names(recommended "server plugins")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "Holdfast <packages@holdfast.dev>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "1~${release}")
set(CPACK_DEBIAN_PACKAGE_SECTION web)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "adduser, libcurl4 | libcurl3-gnutls, ${fetching}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "${recommended}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed web archiver with its queue in PostgreSQL")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Workers on one or many machines claim URLs from a PostgreSQL database, capture
each page with plugins such as wget and Chromium, and keep it as a directory
of files with a checksum manifest, and as rows that psql can read.
.
On one machine nothing has to be set up: holdfast add URL starts a database of
its own. The recommended packages are needed for that, and for the browser.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/postinst)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
