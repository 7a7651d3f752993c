# What the guest tests in addition to steps.sh: the file system's own tests on a device, and a program that writes while
# the device is shared with others. The functions take the path of a device, destroy what is on it, and end at the first
# command that fails.
# shellcheck shell=sh disable=SC2154

# The file system's tests through RocksDB's interface, but for those that fill a device, which the step `full` does, and
# more of RocksDB, which the step `database` has.
file_system() {
  tests='FilesTest.*:NamesTest.*:AsyncReadTest.*:BackupTest.*:CollectionTest.*:DatabaseTest.KeepsItsContent*'
  ISOZONE_TEST_DEVICE=dev:$1 integration_test --gtest_brief=1 --gtest_filter="$tests:-*ForWantOfSpace"
}

# Random operations against an oracle.
model() {
  ISOZONE_TEST_DEVICE=dev:$1 ISOZONE_TEST_OPS=3000 isozone_model_test --gtest_brief=1 --gtest_filter='Model.*'
}

# start_writer DEVICE OPTION...: overwrites a database in the background; its process is $writer.
start_writer() {
  uri=isozone://dev:$1
  shift
  env LD_PRELOAD="$library" db_bench --fs_uri="$uri" --db=/bench --benchmarks=fillrandom --seed=1 --num=20000 \
    --value_size=800 --compression_type=none --write_buffer_size=1048576 --target_file_size_base=1048576 \
    --max_bytes_for_level_base=4194304 "$@" >/tmp/bench 2>/tmp/error &
  writer=$!
}

# Waits until the writer has said this. (It says how many operations are done: 10000, 20000, ... 100000, 200000, ...)
await() {
  for _ in $(seq 600); do
    grep -q "$1" /tmp/error && return
    kill -0 "$writer" 2>/dev/null || break
    sleep 0.5
  done
  echo "the writer has not said '$1':"
  tail -n 20 /tmp/error
  return 1
}

# The statistics of this device must be those of the writer.
statistics_of_writer() { isozone stats --json "$1" | grep -Eo "\"pid\": ?$writer\b"; }

# Everything that the writer wrote must be there and readable.
check_database() {
  env LD_PRELOAD="$library" ldb --fs_uri="isozone://dev:$1" --db=/bench checkconsistency
  isozone fsck --read-data "dev:$1"
}

# held_zones DEVICE OPERATIONS: another tool opens empty zones, as many as the device lets it, while the writer is at
# work. What the device then refuses to the writer waits until the tool lets go of them.
held_zones() {
  isozone mkfs --force "dev:$1" >/dev/null
  start_writer "$1" --writes=1000000000
  await "finished 1000 ops"
  for zone in $(blkzone report "$1" | sed -n 's/^ *start: \(0x[0-9a-f]*\), .*(em).*/\1/p' | tail -n 14); do
    if blkzone open --force -o "$zone" -c 1 "$1" 2>/dev/null; then echo "$zone"; fi
  done >/tmp/held
  echo "$(wc -l </tmp/held) zones are held"
  await "refuses zone"
  while read -r zone; do blkzone finish --force -o "$zone" -c 1 "$1"; done </tmp/held
  await "finished $2 ops"
  kill -9 "$writer"
  wait "$writer" || true
  check_database "$1"
}
