# `make package`: a Debian package of what Install.cmake installs. The packages that it depends on are found by
# dpkg-shlibdeps in the files themselves.
include_guard(GLOBAL)

set(CMAKE_SKIP_PACKAGE_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME isozone)
set(CPACK_PACKAGE_VENDOR Isozone)
set(CPACK_PACKAGE_CONTACT "Isozone maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
    "A file system that stores an unmodified RocksDB on zoned flash: a shared library that
RocksDB loads, the isozone command line tool, the public header and the CMake package.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # and the trigger that makes ldconfig run
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS rocksdb-tools)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "fuse3, passwd")  # fusermount3; postinst makes a group
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/postinst)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS librocksdb-dev)  # for the header
include(CPack)
