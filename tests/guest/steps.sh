# What is tested on a zoned device, in the guest and by scripts/device-test: functions that take the URI of a device,
# such as dev:/dev/nvme0n2, destroy what is on it, and end at the first command that fails. Where they are used,
# isozone, device_conformance_test, db_bench and ldb are on the PATH, $library is libisozone.so, and $scratch is a
# folder.
# shellcheck shell=sh disable=SC2154

conformance() { ISOZONE_TEST_DEVICE=$1 device_conformance_test --gtest_brief=1; }

database() {
  isozone mkfs --force "$1"
  uri=isozone://$1
  LD_PRELOAD="$library" db_bench --fs_uri="$uri" --db=/bench --benchmarks=fillrandom,overwrite,readrandom --seed=1 \
    --num=20000 --reads=1000 --value_size=800 --compression_type=none --write_buffer_size=1048576 \
    --target_file_size_base=1048576 --max_bytes_for_level_base=4194304 >"$scratch/bench" 2>"$scratch/error" || {
    cat "$scratch/bench" "$scratch/error"
    return 1
  }
  grep -E "^(fillrandom|overwrite|readrandom)" "$scratch/bench"
  LD_PRELOAD="$library" ldb --fs_uri="$uri" --db=/bench checkconsistency
  isozone fsck "$1"
  isozone info "$1"
  isozone zones "$1" >"$scratch/zones"
}

# Fills the device until there is no space, deletes every other file, and collects.
full() {
  isozone mkfs --force "$1" >/dev/null
  dd if=/dev/urandom of="$scratch/piece" bs=1M count=5 2>/dev/null
  files=0
  while isozone cp "$1" "$scratch/piece" ":/$files" 2>"$scratch/error"; do files=$((files + 1)); done
  cat "$scratch/error"
  grep -qE "has room for|the device is full" "$scratch/error"
  echo "$files files of 5 MiB fit"
  [ "$files" -gt 10 ]
  for file in $(seq 0 2 $((files - 1))); do isozone rm "$1" "/$file"; done
  isozone gc run "$1" --until 30
  isozone cp "$1" "$scratch/piece" :/again
  for file in $(seq 1 2 $((files - 1))) again; do
    isozone cat "$1" "/$file" | cmp - "$scratch/piece"
  done
  isozone fsck "$1"
}

# A host that does other work, as one that emulates a processor, may be unable to tell delayed reads from others. It
# says so (exit code 4), and leaves the device as it was.
groups() {
  isozone mkfs --force "$1" >/dev/null
  status=0
  isozone izg identify "$1" >"$scratch/groups" || status=$?
  head -n 4 "$scratch/groups"
  isozone fsck "$1"
  [ $status = 4 ] || { [ $status = 0 ] && isozone zones --groups "$1" >/dev/null; }
}

# The same requests through threads, as where io_uring is refused.
threads() {
  conformance "$1?io=threads"
  isozone mkfs --force "$1?io=threads"
  isozone info "$1?io=threads" | tee "$scratch/info"
  grep -q "32 threads" "$scratch/info"
  isozone info "$1" | grep -q io_uring
  isozone info --json "$1" | grep -q '"transfers": *"io_uring"'
}
