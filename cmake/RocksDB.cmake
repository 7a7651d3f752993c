# The RocksDB that the adapter is built for and its tests run on: target isozone_rocksdb_api, ISOZONE_ROCKSDB_VERSION,
# and ISOZONE_OLD_ABI where it is built with the old ABI of libstdc++.
#
#   -DISOZONE_ROCKSDB=system   the RocksDB of the system (Debian: librocksdb-dev); the default
#   -DISOZONE_ROCKSDB=DIR      DIR/include/rocksdb/*.h and one shared library DIR/lib/lib*.so, in any build of RocksDB,
#                              or as scripts/fetch-newest-rocksdb lays out the newest release
#
# What the library inside the rocksdbjni jar asks of a plain C++ program (found with nm, readelf and ldd on 11.8.1):
#  * It exports the whole C++ API and defines its JNI entry points itself, so neither a JVM nor libjvm is needed; glibc
#    2.17 and libstdc++ are all it loads. Compression libraries are inside.
#  * Strings and containers are of the new libstdc++ ABI (std::__cxx11), which is GCC's default. Those of 9.7.3 and
#    10.1.3 are of the old ABI: none of RocksDB's symbols there names std::__cxx11 (OldAbi.cmake).
#  * It is built without RTTI: there is no typeinfo to derive from FileSystem or EventListener with. Whatever includes
#    its headers is compiled with -fno-rtti (else the link fails with "undefined reference to typeinfo"). Debian's
#    library has typeinfo.
#  * It has no SONAME, so a program must record its bare name and find it by RPATH (IMPORTED_NO_SONAME).
#  * The only macro that changes the layout of a public type is ROCKSDB_ASSERT_STATUS_CHECKED; both are built without.
include_guard(GLOBAL)

set(ISOZONE_ROCKSDB "system" CACHE STRING "RocksDB to build for: system, or a folder with include/ and lib/")

add_library(isozone_rocksdb_api INTERFACE)
if(ISOZONE_ROCKSDB STREQUAL "system")
  find_path(ISOZONE_ROCKSDB_INCLUDE rocksdb/version.h)
  find_library(ISOZONE_ROCKSDB_LIBRARY rocksdb)
  if(NOT ISOZONE_ROCKSDB_INCLUDE OR NOT ISOZONE_ROCKSDB_LIBRARY)
    message(FATAL_ERROR
            "RocksDB is not installed: run scripts/install-dependencies, or set ISOZONE_ROCKSDB to its folder")
  endif()
  target_link_libraries(isozone_rocksdb_api INTERFACE ${ISOZONE_ROCKSDB_LIBRARY})
else()
  get_filename_component(rocksdb_dir ${ISOZONE_ROCKSDB} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  file(GLOB ISOZONE_ROCKSDB_LIBRARY ${rocksdb_dir}/lib/lib*.so)
  list(LENGTH ISOZONE_ROCKSDB_LIBRARY library_count)
  if(NOT EXISTS ${rocksdb_dir}/include/rocksdb/version.h OR NOT library_count EQUAL 1)
    message(FATAL_ERROR "${rocksdb_dir} must hold include/rocksdb and exactly one lib/lib*.so: "
                        "run scripts/fetch-newest-rocksdb ${rocksdb_dir}")
  endif()
  set(ISOZONE_ROCKSDB_INCLUDE ${rocksdb_dir}/include)
  file(GLOB ISOZONE_ROCKSDBJNI_JAR ${rocksdb_dir}/lib/rocksdbjni-*.jar)  # none: the library is not that of rocksdbjni

  find_program(READELF_PROGRAM readelf REQUIRED)
  execute_process(COMMAND ${READELF_PROGRAM} --dynamic ${ISOZONE_ROCKSDB_LIBRARY} OUTPUT_VARIABLE dynamic_section)
  execute_process(COMMAND ${READELF_PROGRAM} --dyn-syms --wide ${ISOZONE_ROCKSDB_LIBRARY} OUTPUT_VARIABLE symbols)
  add_library(isozone_rocksdb_library SHARED IMPORTED GLOBAL)
  set_target_properties(isozone_rocksdb_library PROPERTIES IMPORTED_LOCATION ${ISOZONE_ROCKSDB_LIBRARY}
                                                           INTERFACE_INCLUDE_DIRECTORIES ${ISOZONE_ROCKSDB_INCLUDE})
  if(NOT dynamic_section MATCHES "SONAME")
    set_target_properties(isozone_rocksdb_library PROPERTIES IMPORTED_NO_SONAME TRUE)
  endif()
  if(NOT symbols MATCHES "_ZTIN7rocksdb17FileSystemWrapperE")
    target_compile_options(isozone_rocksdb_api INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
  endif()
  if(NOT symbols MATCHES "rocksdb[^\n]*__cxx11")
    set(ISOZONE_OLD_ABI ON)
  endif()
  target_link_libraries(isozone_rocksdb_api INTERFACE isozone_rocksdb_library)
endif()

file(STRINGS ${ISOZONE_ROCKSDB_INCLUDE}/rocksdb/version.h version_lines REGEX "#define ROCKSDB_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" version_numbers "${version_lines}")
list(JOIN version_numbers "." ISOZONE_ROCKSDB_VERSION)
if(ISOZONE_ROCKSDB_VERSION VERSION_LESS 7.8)
  message(FATAL_ERROR "RocksDB ${ISOZONE_ROCKSDB_VERSION} is too old: Isozone needs 7.8 or newer")
endif()
message(STATUS "RocksDB ${ISOZONE_ROCKSDB_VERSION}: ${ISOZONE_ROCKSDB_LIBRARY}")
