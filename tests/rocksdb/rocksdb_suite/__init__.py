"""RocksDB's own tests on Isozone, beside the same tests on POSIX: what scripts/rocksdb-tests is made of."""
