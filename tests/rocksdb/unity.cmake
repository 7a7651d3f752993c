# Included by RocksDB's own CMake project when scripts/rocksdb-tests builds it (CMAKE_PROJECT_INCLUDE): eight files are
# compiled at once, since headers take most of the time of each.
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
