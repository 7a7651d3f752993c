# What is tested of NVMe passthrough in a guest: dev:/dev/ng0n1 beside dev:/dev/nvme0n1, in addition to the steps that
# every device passes. The functions destroy what is on the device, and end at the first command that fails.
# shellcheck shell=sh disable=SC2154

# `isozone info` says how requests reach the device; threads send commands as well. Linux before 6.7 loses errors of
# commands by io_uring, which is not used there.
passthrough_is_used() {
  isozone mkfs --force dev:/dev/ng0n1 >/dev/null
  isozone info dev:/dev/ng0n1 | tee /tmp/info
  case $(uname -r) in
    6.1.*)
      grep -q "NVMe passthrough, 32 threads (io_uring: Linux before 6.7 loses errors of NVMe commands)" /tmp/info
      refused 3 "Isozone does not use io_uring" isozone info 'dev:/dev/ng0n1?io=ring'
      ;;
    *) grep -q "NVMe passthrough, io_uring" /tmp/info ;;
  esac
  conformance 'dev:/dev/ng0n1?io=threads'
  isozone mkfs --force dev:/dev/ng0n1 >/dev/null
  isozone info 'dev:/dev/ng0n1?io=threads' | grep -q "NVMe passthrough, 32 threads"
}

# The block device holds the namespace, for writers by either name; and either name leads to their statistics.
passthrough_refusals() {
  refused 2 "there is no device" isozone info dev:/dev/ng9n9
  refused 3 "no block device" isozone info dev:/dev/nvme0
  isozone mkfs --force dev:/dev/ng0n1 >/dev/null
  refused 9 "carries an Isozone file system" isozone mkfs dev:/dev/ng0n1
  for names in "ng0n1 nvme0n1" "nvme0n1 ng0n1" "ng0n1 ng0n1"; do
    start_writer "/dev/${names%% *}" --writes=1000000000
    await "finished 1000 ops"
    refused 4 "/dev/nvme0n1 is in use by process $writer;" isozone mkfs --force "dev:/dev/${names##* }"
    isozone info "dev:/dev/${names##* }" >/dev/null
    statistics_of_writer "dev:/dev/${names##* }"
    kill -9 "$writer"
    wait "$writer" || true
  done
  isozone fsck --read-data dev:/dev/ng0n1
}

# Who may send commands. Linux 6.2 has begun to let others than root.
passthrough_rights() {
  isozone mkfs --force dev:/dev/ng0n1 >/dev/null
  trap 'chown root:root /dev/nvme0n1 /dev/ng0n1' EXIT
  chown nobody /dev/nvme0n1
  refused 8 "not allowed to send NVMe commands" su nobody -c "isozone info dev:/dev/ng0n1"
  chown nobody /dev/ng0n1
  case $(uname -r) in
    6.1.*)
      refused 8 "Linux before 6.2 lets only root do that" su nobody -c "isozone info dev:/dev/ng0n1"
      su nobody -c "isozone info dev:/dev/nvme0n1" >/dev/null
      ;;
    *)
      su nobody -c "isozone mkfs --force dev:/dev/ng0n1" | cat
      su nobody -c "ISOZONE_TEST_DEVICE=dev:/dev/ng0n1 device_conformance_test --gtest_brief=1"
      ;;
  esac
}

# Both names of a namespace, in turn: what was written by one is there for the other, and zones go on where they were.
# Linux from 6.10 on has write pointers of its own, which do not see commands: the writes by the block device that it
# refuses for that are sent again, and nothing is lost.
passthrough_in_turn() {
  isozone mkfs --force dev:/dev/nvme0n1 >/dev/null
  dd if=/dev/urandom of=/tmp/piece bs=1M count=2 2>/dev/null
  trap 'cat /tmp/error' EXIT
  : >/tmp/error
  for round in 1 2 3 4; do
    isozone cp dev:/dev/nvme0n1 /tmp/piece ":/block$round" 2>>/tmp/error
    isozone cp dev:/dev/ng0n1 /tmp/piece ":/command$round" 2>>/tmp/error
  done
  for name in nvme0n1 ng0n1; do
    for round in 1 2 3 4; do
      isozone cat dev:/dev/$name "/block$round" | cmp - /tmp/piece
      isozone cat dev:/dev/$name "/command$round" | cmp - /tmp/piece
    done
    isozone fsck --read-data dev:/dev/$name
  done
  ! grep "Write Fault" /tmp/error
}

# The controller is reset under a writer, again and again. The kernel sends no command again that was lost in that.
passthrough_reset() {
  isozone mkfs --force dev:/dev/ng0n1 >/dev/null
  start_writer /dev/ng0n1 --benchmarks=fillrandom,overwrite,readrandom --reads=20000
  await "finished 1000 ops"
  resets=0
  while kill -0 "$writer" 2>/dev/null && [ $resets -lt 10 ]; do # no more: it must get on beside them
    echo 1 >/sys/class/nvme/nvme0/reset_controller
    resets=$((resets + 1))
    sleep 0.7
  done
  wait "$writer" || { cat /tmp/bench /tmp/error && return 1; }
  echo "$resets resets, $(grep -c "Write Fault" /tmp/error) writes lost"
  [ "$resets" -gt 3 ]
  check_database /dev/ng0n1
}

# The steps of every kernel: both pass commands on.
passthrough_steps() {
  for device in ng0n1 ng0n2; do step "conformance-$device" conformance dev:/dev/$device; done
  step database-ng0n1 database dev:/dev/ng0n1
  step passthrough-is-used passthrough_is_used
  step passthrough-refusals passthrough_refusals
  step passthrough-rights passthrough_rights
  step passthrough-in-turn passthrough_in_turn
  step passthrough-reset passthrough_reset
}
