# The old ABI of libstdc++ for all targets, where the RocksDB of the build asks for it (RocksDB.cmake): strings are
# counted references, and names do not say __cxx11. fmt and spdlog are compiled from their headers, since the libraries
# of the system have the new ABI, and --as-needed leaves these out. Whatever else isozone-java is linked to is in C.
# Programs that need other libraries in C++, as the tests need GoogleTest, cannot be linked in such a build.
include_guard(GLOBAL)

if(ISOZONE_BUILD_TESTS OR ISOZONE_BUILD_BENCHMARKS)
  message(FATAL_ERROR "${ISOZONE_ROCKSDB_LIBRARY} is built with the old ABI of libstdc++, for which only isozone-java "
                      "is built: run scripts/build-java, or use a RocksDB with the new ABI")
endif()
message(STATUS "The old ABI of libstdc++, which this RocksDB has")
add_compile_definitions(_GLIBCXX_USE_CXX11_ABI=0)
set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
set_target_properties(spdlog::spdlog PROPERTIES INTERFACE_COMPILE_DEFINITIONS SPDLOG_FMT_EXTERNAL)
add_link_options(LINKER:--as-needed)
