# What is tested on devices on which zonefs is mounted, and on block devices without zones. Part of tests/guest/init.
# shellcheck shell=sh disable=SC2154

# mounted DEVICE OPTIONS FUNCTION ARGUMENT...: makes a zonefs on the device, mounts it at /mnt/z, and runs the function.
mounted() {
  device=$1
  options=$2
  shift 2
  blkzone reset "$device"
  dd if=/zonefs-superblock of="$device" bs=4096 count=1 oflag=direct 2>/dev/null
  # A sequential zone would hold a resource.
  blkzone report -c 1 "$device" | grep -q "type: 1" || blkzone finish -c 1 "$device"
  mkdir -p /mnt/z
  mount -t zonefs -o "$options" "$device" /mnt/z
  status=0
  (
    set -e
    "$@"
  ) &
  wait $! || status=$?
  umount /mnt/z
  return $status
}

# The list that block devices run, by a user who has no right but to the files of the zones.
zonefs_rules() {
  refused 8 "the file of user 'root' with mode 0640" su nobody -c "isozone info zonefs:/mnt/z"
  chown -R nobody /mnt/z/seq
  chmod 600 /mnt/z/seq/*
  as_nobody "conformance zonefs:/mnt/z"
  [ "$(cat "/sys/fs/zonefs/${device#/dev/}/nr_wro_seq_files")" = 0 ]
}
zonefs_database() {
  chown -R nobody /mnt/z/seq
  as_nobody "database zonefs:/mnt/z"
}
zonefs_full() {
  chown -R nobody /mnt/z/seq
  as_nobody "full zonefs:/mnt/z"
}

as_nobody() {
  rm -rf /tmp/nobody && mkdir -m 777 /tmp/nobody
  su nobody -c "export PATH=/bin library=$library scratch=/tmp/nobody; set -e; . /steps.sh; $1"
}

zonefs_refusals() {
  refused 2 "there is no directory" isozone info zonefs:/mnt/none
  refused 3 "not where a zonefs is mounted" isozone mkfs zonefs:/tmp
  refused 3 "has no folder seq" isozone mkfs zonefs:/mnt/z/seq
  refused 4 "mounted at /mnt/z" isozone mkfs "dev:$device"
  refused 3 "written through io_uring, and not by 32 threads" isozone mkfs "zonefs:/mnt/z?io=threads"
  isozone mkfs zonefs:/mnt/z
  refused 9 "carries an Isozone file system" isozone mkfs zonefs:/mnt/z
  isozone mkfs --force zonefs:/mnt/z >/dev/null
  isozone info zonefs:/mnt/z | tee /tmp/info
  grep -q "zonefs (rw,errors=repair; 0 of 14 files open for writing, .* of 14 active)" /tmp/info

  env LD_PRELOAD="$library" db_bench --fs_uri=isozone://zonefs:/mnt/z --db=/busy --benchmarks=fillrandom \
    --num=100000000 >/dev/null 2>&1 &
  await_directory zonefs:/mnt/z busy
  refused 4 "in use by process $!;" isozone mkfs --force zonefs:/mnt/z
  isozone ls zonefs:/mnt/z / | grep -q busy
  kill -9 $!
  wait $! || true
  isozone fsck zonefs:/mnt/z

  mount -o remount,ro /mnt/z
  refused 10 "is mounted read-only" isozone mkfs --force zonefs:/mnt/z
  isozone fsck zonefs:/mnt/z
  isozone ls "zonefs:/mnt/z?io=threads" / | grep -q busy
}

# Zones die, as `dead_zones` has it on a block device. zonefs notices it when a request of the zone fails. Five
# conventional zones lie in front of the others: the zone of seq/0 begins at sector 40960.
zonefs_dead_zones() {
  configuration=/sys/kernel/config/nullb/${device#/dev/}
  isozone mkfs zonefs:/mnt/z >/dev/null
  dd if=/dev/urandom of=/tmp/piece bs=1M count=5 2>/dev/null
  isozone cp zonefs:/mnt/z /tmp/piece :/before
  full=$(find /mnt/z/seq -size 4096k | sed 's/.*seq.//' | head -n 1)
  open=$(find /mnt/z/seq -size +100k -size -4096k | sed 's/.*seq.//' | head -n 1)
  echo "zone $full is full, zone $open is written in part"
  echo $((40960 + 8192 * open)) >"$configuration/zone_readonly"
  for file in 0 1 2 3; do isozone cp zonefs:/mnt/z /tmp/piece ":/$file"; done
  for file in before 0 1 2 3; do isozone cat zonefs:/mnt/z "/$file" | cmp - /tmp/piece; done
  isozone zones --table zonefs:/mnt/z | grep read-only
  isozone fsck zonefs:/mnt/z

  echo $((40960 + 8192 * full)) >"$configuration/zone_offline"
  refused 7 "zone $full" isozone cat zonefs:/mnt/z /before
  [ "$(stat -c %a/%s "/mnt/z/seq/$full")" = 0/0 ]
  for file in 0 1 2 3; do isozone cat zonefs:/mnt/z "/$file" | cmp - /tmp/piece; done
  isozone rm zonefs:/mnt/z /before
  isozone cp zonefs:/mnt/z /tmp/piece :/after
  isozone cat zonefs:/mnt/z /after | cmp - /tmp/piece
  isozone fsck zonefs:/mnt/z
  conformance zonefs:/mnt/z # which leaves these zones alone
  echo $((40960 + 8192 * open)) >"$configuration/zone_readonly" # a second time: back to normal
  echo $((40960 + 8192 * full)) >"$configuration/zone_offline"
}

# A write fails. By default that makes all of the zonefs read-only, and with it the file system; with errors=repair, the
# bytes go to another zone.
zonefs_bad_block() {
  configuration=/sys/kernel/config/nullb/${device#/dev/}
  isozone mkfs zonefs:/mnt/z >/dev/null
  dd if=/dev/urandom of=/tmp/piece bs=1M count=5 2>/dev/null
  isozone cp zonefs:/mnt/z /tmp/piece :/before
  for zone in 14 16 18 20; do
    sector=$((zone * 8192 + 4096))
    echo "+$sector-$((sector + 7))" >"$configuration/badblocks"
  done
  status=0
  for file in 0 1 2 3 4 5 6 7 8 9; do
    isozone cp zonefs:/mnt/z /tmp/piece ":/$file" 2>/tmp/error || status=$?
    [ $status = 0 ] || break
  done
  echo "-0-511999" >"$configuration/badblocks"
  cat /tmp/error
  isozone cat zonefs:/mnt/z /before | cmp - /tmp/piece
  if [ "$1" = read-only ]; then
    [ $status != 0 ] && grep -q "is mounted read-only now" /tmp/error
    mount -o remount,rw,errors=repair /mnt/z
  else
    [ $status = 0 ]
  fi
  isozone fsck zonefs:/mnt/z
}

# An emulated SSD on a block device without zones.
emulated_rules() {
  isozone mkfs "emu:$1?zone_size=4MiB&timing=off"
  conformance "emu:$1?timing=off&sync=disk"
  database "emu:$1?timing=off&sync=disk"
}

emulated_refusals() {
  device=/dev/nullb4
  refused 3 "has zones of its own" isozone mkfs emu:/dev/nullb0
  refused 2 "there is no device /dev/nothing" isozone mkfs emu:/dev/nothing
  [ ! -e /dev/nothing ]
  dd if=/dev/zero of=$device bs=1M count=1 2>/dev/null
  refused 2 "carries no image" isozone info "emu:$device"
  refused 1 "has room for zones=" isozone mkfs "emu:$device?zones=1000"
  mkswap -L foreign $device >/dev/null
  refused 9 "carries swap, label 'foreign'" isozone mkfs "emu:$device?zone_size=4MiB"
  swapon $device
  refused 4 "used for swapping" isozone mkfs --force emu:$device
  swapoff $device
  isozone mkfs --force "emu:$device?zone_size=4MiB"
  refused 9 "carries an Isozone file system" isozone mkfs "emu:$device?zone_size=4MiB"
  dd if=/dev/urandom of=$device bs=64K count=1 2>/dev/null
  refused 9 "data of a kind that is not known" isozone mkfs "emu:$device?zone_size=4MiB"
  isozone mkfs --force "emu:$device?zone_size=4MiB"
  emulated_damaged_header
  chown root:disk $device
  chmod 660 $device
  refused 8 "join its group 'disk'" su nobody -c "isozone info emu:$device"
}

# A header that is damaged behind the word by which an image is known: --force makes a new one, if the options are
# right.
emulated_damaged_header() {
  printf damaged | dd of="$device" bs=1 seek=100 conv=notrunc 2>/dev/null
  refused 3 "header is damaged" isozone info "emu:$device"
  refused 9 "use --force to erase it" isozone mkfs "emu:$device?zone_size=4MiB"
  refused 1 "unknown option" isozone mkfs --force "emu:$device?zone_size=4MiB&zonse=1"
  refused 3 "header is damaged" isozone info "emu:$device"
  isozone mkfs --force "emu:$device?zone_size=4MiB"
  isozone fsck "emu:$device"
}

# A device that fails to discard, since one block of the last zone is bad: its zones are used all the same.
emulated_refused_discards() {
  configuration=/sys/kernel/config/nullb/nullb4
  dd if=/dev/zero of="$1" bs=1M count=1 2>/dev/null # no image, so that one is made
  echo "+485376-485383" >$configuration/badblocks
  isozone mkfs --force "emu:$1?zone_size=4MiB&timing=off" >/dev/null 2>/tmp/error
  cat /tmp/error
  echo "-0-491519" >$configuration/badblocks
  grep -q "refuses to discard blocks" /tmp/error
  isozone fsck "emu:$1?timing=off"
}

# A zone that is reset is discarded: the device gives its blocks back, and reads zeros from then on.
emulated_discards() {
  isozone mkfs --force "emu:$1?zone_size=4MiB&timing=off"
  dd if=/dev/urandom of=/tmp/piece bs=1M count=20 2>/dev/null
  isozone cp "emu:$1?timing=off" /tmp/piece :/piece
  before=$(written_bytes "$1")
  isozone rm "emu:$1?timing=off" /piece
  isozone gc run "emu:$1?timing=off" --until 90 >/dev/null
  after=$(written_bytes "$1")
  echo "$before bytes of the device are not zero before, $after after"
  [ "$before" -gt 20000000 ] && [ "$after" -lt 8000000 ]
  isozone fsck "emu:$1?timing=off"
}
written_bytes() { tr -d '\000' <"$1" | wc -c; }

# A SCSI disk without zones, in place of the one with zones, which tells what it has mapped.
emulated_scsi() {
  rmmod scsi_debug
  insmod /modules/scsi_debug.ko dev_size_mb=160 lbpu=1 sector_size=512 physblk_exp=3 delay=0
  wait_for /dev/sda
  emulated_discards /dev/sda
  tr ',' '\n' </sys/bus/pseudo/drivers/scsi_debug/map | wc -l
}

emulated_steps() {
  step emulated-rules emulated_rules /dev/nullb4
  step emulated-refusals emulated_refusals
  step emulated-discards emulated_discards /dev/nullb4
  step emulated-refused-discards emulated_refused_discards /dev/nullb4
  step emulated-scsi emulated_scsi
}

zonefs_steps() {
  step zonefs-nullb0 mounted /dev/nullb0 errors=repair zonefs_rules
  step zonefs-nullb0-explicit-open mounted /dev/nullb0 errors=repair,explicit-open zonefs_rules
  step zonefs-nvme0n1 mounted /dev/nvme0n1 errors=repair zonefs_rules
  step zonefs-nvme0n1-explicit-open mounted /dev/nvme0n1 errors=repair,explicit-open zonefs_rules
  step zonefs-database mounted /dev/nvme0n1 errors=repair zonefs_database
  step zonefs-database-explicit-open mounted /dev/nvme0n1 errors=repair,explicit-open zonefs_database
  step zonefs-groups mounted /dev/nullb3 errors=repair groups zonefs:/mnt/z
  step zonefs-full mounted /dev/nvme0n1 errors=repair,explicit-open zonefs_full
  step zonefs-refusals mounted /dev/nullb0 errors=repair zonefs_refusals
  step zonefs-dead-zones mounted /dev/nullb1 errors=repair zonefs_dead_zones
  step zonefs-repairs mounted /dev/nullb1 errors=repair zonefs_bad_block writable
  step zonefs-turns-read-only mounted /dev/nullb1 errors=remount-ro zonefs_bad_block read-only
}
