# What is tested on devices on which zonefs is mounted. Part of tests/guest/init.
# shellcheck shell=sh disable=SC2154

# mounted DEVICE OPTIONS FUNCTION ARGUMENT...: makes a zonefs on the device, mounts it at /mnt/z, and runs the function.
mounted() {
  device=$1
  options=$2
  shift 2
  blkzone reset "$device"
  dd if=/zonefs-superblock of="$device" bs=4096 count=1 oflag=direct 2>/dev/null
  blkzone report -c 1 "$device" | grep -q "type: 1" || blkzone finish -c 1 "$device" # a sequential zone holds a resource
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
  as_nobody "full zonefs:/mnt/z"
}
zonefs_groups() { groups zonefs:/mnt/z; }

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
  sleep 3
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

# Zones die, as `dead_zones` has it on a block device. zonefs notices it when a request of the zone fails. Five conventional
# zones lie in front of the others: the zone of seq/0 begins at sector 40960.
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

zonefs_steps() {
  step zonefs-nullb0 mounted /dev/nullb0 errors=repair zonefs_rules
  step zonefs-nullb0-explicit-open mounted /dev/nullb0 errors=repair,explicit-open zonefs_rules
  step zonefs-nvme0n1 mounted /dev/nvme0n1 errors=repair zonefs_rules
  step zonefs-nvme0n1-explicit-open mounted /dev/nvme0n1 errors=repair,explicit-open zonefs_rules
  step zonefs-database mounted /dev/nvme0n1 errors=repair zonefs_database
  step zonefs-database-explicit-open mounted /dev/nvme0n1 errors=repair,explicit-open zonefs_database
  step zonefs-groups mounted /dev/nullb3 errors=repair zonefs_groups
  step zonefs-refusals mounted /dev/nullb0 errors=repair zonefs_refusals
  step zonefs-dead-zones mounted /dev/nullb1 errors=repair zonefs_dead_zones
  step zonefs-repairs mounted /dev/nullb1 errors=repair zonefs_bad_block writable
  step zonefs-turns-read-only mounted /dev/nullb1 errors=remount-ro zonefs_bad_block read-only
}
