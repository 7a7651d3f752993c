# What is tested of `isozone export` in a guest whose kernel has zoned ublk: an emulated SSD as a block device, with the
# kernel's file systems, fio and Isozone itself on it. Each step makes an image of its own, and leaves nothing behind.
# shellcheck shell=sh disable=SC2154

image=/tmp/ssd.img
exported=/dev/ublkb0

# make_image ZONES [KEY=VALUE...]: zones of 4 MiB with a capacity of 3 MiB.
make_image() {
  rm -f $image
  options="profile=small-zone&zones=$1&zone_size=4M&zone_capacity=3M&timing=off"
  shift
  [ $# -gt 0 ] || set -- max_open=10 max_active=14
  for option in "$@"; do options="$options&$option"; done
  isozone mkfs "emu:$image?$options" >/dev/null
}

# serve ARGUMENT...: runs isozone export in the background, and returns when the device is there.
serve() {
  isozone export "$@" >/tmp/export 2>&1 &
  server=$!
  trap clean_up EXIT
  for _ in $(seq 600); do
    grep -q "^$exported is " /tmp/export && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat /tmp/export
  return 1
}

stop_serving() {
  kill -TERM "$server"
  wait "$server"
  [ ! -e $exported ]
}

# At the end of a step, also where it failed: the next one finds no device.
clean_up() {
  status=$?
  set +e
  touch /tmp/enough
  umount /tmp/mounted 2>/dev/null
  for _ in 1 2 3; do
    kill -TERM "$server" 2>/dev/null || isozone export --remove 0 2>/dev/null
    [ -e $exported ] || break
    sleep 3 # only a later signal is the second one
  done
  wait
  umount /tmp/mounted 2>/dev/null
  exit $status
}

# The zones as the kernel and as Isozone show them: a line for each, with its state, capacity and write pointer in
# bytes.
zones_of_kernel() {
  blkzone report "$1" |
    sed -n 's/^ *start: 0x.*, cap 0x\([0-9a-f]*\), wptr 0x\([0-9a-f]*\) .*zcond: *\([0-9]*\)(.*/\3 0x\1 0x\2/p' |
    while read -r condition capacity pointer; do
      case $condition in
        1) state=empty ;;
        2) state=implicitly-open ;;
        3) state=explicitly-open ;;
        4) state=closed ;;
        14) state=full pointer=$capacity ;;
        *) state=$condition ;;
      esac
      echo "$state $((capacity * 512)) $((pointer * 512))"
    done
}
zones_of_isozone() {
  isozone zones --json "$1" | sed -n 's/^ *"\(state\|capacity\|written\)": "*\([^",]*\).*/\2/p' | paste -d' ' - - -
}

# What the kernel makes of the device, and what the rules of a zoned device say.
export_conformance() {
  make_image 64
  serve "emu:$image"
  for pair in queue/zoned=host-managed queue/chunk_sectors=8192 queue/logical_block_size=4096 queue/max_open_zones=10 \
    queue/max_active_zones=14 queue/zone_append_max_bytes=524288 "queue/write_cache=write back" queue/fua=1; do
    found=$(cat "/sys/block/ublkb0/${pair%%=*}")
    [ "$found" = "${pair#*=}" ] || { echo "$pair, but $found" && return 1; }
  done
  [ "$(cat /sys/block/ublkb0/queue/discard_max_bytes)" = 0 ]
  conformance dev:$exported
  stop_serving
}

# A disk with conventional zones: the device has the others.
export_disk() {
  serve dev:/dev/sda
  zones_of_kernel $exported >/tmp/exported
  zones_of_kernel /dev/sda | sed 1,4d | diff - /tmp/exported
  conformance dev:$exported
  zones_of_kernel $exported >/tmp/exported
  zones_of_kernel /dev/sda | sed 1,4d | diff - /tmp/exported
  stop_serving
}

# Isozone on the block device, and the same file system in the image.
export_isozone() {
  make_image 64
  serve "emu:$image?timing=off"
  database dev:$exported
  blkzone finish -o 0x70000 -c 8192 $exported
  zones_of_kernel $exported >/tmp/kernel
  zones_of_isozone "emu:$image" >/tmp/emulated
  zones_of_isozone "dev:$exported" >/tmp/block
  [ "$(wc -l </tmp/kernel)" = 64 ]
  diff /tmp/kernel /tmp/emulated
  diff /tmp/block /tmp/emulated
  sort /tmp/kernel | cut -d' ' -f1 | uniq -c
  stop_serving
  isozone fsck --read-data "emu:$image"
  LD_PRELOAD="$library" ldb --fs_uri="isozone://emu:$image" --db=/bench checkconsistency
}

export_fio() {
  make_image 48
  serve "emu:$image"
  common="--filename=$exported --direct=1 --zonemode=zbd --group_reporting --minimal --max_open_zones=8"
  # shellcheck disable=SC2086
  fio $common --name=sequential --rw=write --bs=128k --size=64M --verify=crc32c --do_verify=1 --ioengine=psync
  blkzone reset $exported
  # shellcheck disable=SC2086
  fio $common --name=random --rw=randwrite --bs=16k --size=64M --io_size=24M --verify=crc32c --ioengine=libaio \
    --iodepth=16 --offset=64M
  stop_serving
}

# fill DIRECTORY FILES ROUNDS: writes FILES files of 2 MiB, and all but every fifth ROUNDS times, each time other bytes.
# Then it removes every third.
fill() {
  [ -e /tmp/piece ] || dd if=/dev/urandom of=/tmp/piece bs=1M count=2 2>/dev/null
  for round in $(seq "$3"); do
    for file in $(seq "$2"); do
      [ "$round" = 1 ] || [ $((file % 5)) != 0 ] || continue
      { echo "$round $file" && cat /tmp/piece; } >"$1/$file.new"
      mv "$1/$file.new" "$1/$file"
    done
    sync
  done
  for file in $(seq 1 3 "$2"); do rm "$1/$file"; done
}

# The files are those that mounted_file_system has written.
check_sums() {
  (cd /tmp/mounted && md5sum -c /tmp/sums >/tmp/output) || { cat /tmp/output && return 1; }
}

# mounted_file_system DEVICE OPTIONS CHECK...: a file system that was made is mounted, filled, checked, and mounted
# again.
mounted_file_system() {
  device=$1 options=$2
  shift 2
  mkdir -p /tmp/mounted
  # shellcheck disable=SC2086
  mount $options "$device" /tmp/mounted
  fill /tmp/mounted 30 5
  (cd /tmp/mounted && md5sum ./*) >/tmp/sums
  [ "$(wc -l </tmp/sums)" = 20 ]
  umount /tmp/mounted
  "$@" >/tmp/output 2>&1 || { tail -20 /tmp/output && return 1; }
  # shellcheck disable=SC2086
  mount $options "$device" /tmp/mounted
  check_sums
  umount /tmp/mounted
  zones_of_kernel $exported | cut -d' ' -f1 | sort | uniq -c
}

# Btrfs reclaims zones in the background: the device has room for all that is written, if it should come late. What it
# reclaims is moved here, by `balance`.
export_btrfs() {
  make_image 160
  serve "emu:$image?timing=off"
  mkfs.btrfs -q -O zoned -d single -m single $exported
  mounted_file_system $exported "-t btrfs" btrfs check $exported
  mount -t btrfs $exported /tmp/mounted
  btrfs balance start -dusage=70 /tmp/mounted
  check_sums
  umount /tmp/mounted
  btrfs check $exported >/tmp/output 2>&1 || { tail -20 /tmp/output && return 1; }
  stop_serving
}

# Metadata of F2FS is overwritten, so it lies on a device without zones. F2FS knows no limit of active zones.
export_f2fs() {
  make_image 72 max_open=0 max_active=0
  serve "emu:$image?timing=off"
  null_device 4 zoned=0 size=64 blocksize=4096
  mkfs.f2fs -q -f -m -c $exported /dev/nullb4
  mounted_file_system /dev/nullb4 "-t f2fs" fsck.f2fs /dev/nullb4
  stop_serving
}

export_xfs() {
  make_image 72
  serve "emu:$image?timing=off"
  null_device 5 zoned=0 size=512 blocksize=4096
  mkfs.xfs -q -f -r rtdev=$exported,zoned=1 /dev/nullb5
  mounted_file_system /dev/nullb5 "-t xfs -o rtdev=$exported" xfs_repair -n -r $exported /dev/nullb5
  stop_serving
}

export_zonefs() {
  make_image 32
  serve "emu:$image"
  mkzonefs -f $exported
  mkdir -p /tmp/mounted
  mount -t zonefs $exported /tmp/mounted
  [ "$(find /tmp/mounted/seq -type f | wc -l)" = 31 ]
  dd if=/dev/urandom of=/tmp/piece bs=1M count=2 2>/dev/null
  for zone in 3 4 5; do
    dd if=/tmp/piece of=/tmp/mounted/seq/$zone bs=64k oflag=direct,append conv=notrunc 2>/dev/null
  done
  truncate -s 0 /tmp/mounted/seq/4
  truncate -s 3145728 /tmp/mounted/seq/5
  umount /tmp/mounted
  mount -t zonefs $exported /tmp/mounted
  cmp /tmp/piece /tmp/mounted/seq/3
  [ "$(stat -c %s /tmp/mounted/seq/4 /tmp/mounted/seq/5 | tr '\n' ' ')" = "0 3145728 " ]
  umount /tmp/mounted
  stop_serving
}

# recover_under PROCESS: kills the server again and again while PROCESS uses the device, and has another one go on. Some
# are killed while they take the device over.
recover_under() {
  for pause in 0.1 0.3 0.6 none; do
    sleep 1
    kill -0 "$1" || { echo "the load has ended too early" && return 1; }
    kill -9 "$server"
    if [ $pause != none ]; then
      isozone export "emu:$image" --id 0 --recover >/dev/null 2>&1 &
      server=$!
      sleep $pause
      kill -9 "$server" || true # it may have refused; the next one shows whether it had to
    fi
    serve "emu:$image" --id 0 --recover
  done
}

# Writes: what fio writes is what it reads, and no request fails.
export_killed_writes() {
  make_image 64
  serve "emu:$image" --id 0
  rm -f /tmp/enough
  until [ -e /tmp/enough ]; do
    fio --filename=$exported --direct=1 --zonemode=zbd --max_open_zones=8 --name=random --rw=randwrite --bs=32k \
      --io_size=96M --verify=crc32c --ioengine=libaio --iodepth=8 --minimal >/tmp/fio 2>&1 ||
      { cat /tmp/fio && exit 1; }
  done &
  load=$!
  recover_under $load
  touch /tmp/enough
  wait $load
  stop_serving
}

# Appends: those of btrfs are neither lost nor done twice.
export_killed_appends() {
  make_image 160
  serve "emu:$image" --id 0
  mkfs.btrfs -q -O zoned -d single -m single $exported
  mkdir -p /tmp/mounted
  mount -t btrfs $exported /tmp/mounted
  rm -f /tmp/enough
  until [ -e /tmp/enough ]; do fill /tmp/mounted 20 3; done &
  load=$!
  recover_under $load
  touch /tmp/enough
  wait $load
  btrfs scrub start -B /tmp/mounted
  umount /tmp/mounted
  btrfs check $exported
  stop_serving
}

# Waits until the server has said that the device is in use.
await_use() {
  for _ in $(seq 200); do
    grep "is in use" /tmp/export && return
    sleep 0.1
  done
  return 1
}

# A signal ends the server under load: its users get errors, and the image is whole.
export_stopped() {
  make_image 64
  serve "emu:$image" --id 0
  isozone mkfs --force dev:$exported >/dev/null
  # By a descriptor, since dd makes a file where the device has gone.
  {
    exec 3<$exported
    while dd if=/dev/zero of=/proc/self/fd/3 bs=64k count=16 seek=3200 oflag=direct 2>/dev/null; do
      blkzone reset -o 0x64000 -c 8192 $exported
    done
  } &
  load=$!
  sleep 1
  stop_serving
  wait $load || true
  isozone fsck "emu:$image"

  # A device in use stays until it is not, or until it is asked for twice.
  serve "emu:$image" --id 0
  mkfs.btrfs -q -f -O zoned -d single -m single $exported
  mkdir -p /tmp/mounted
  mount -t btrfs $exported /tmp/mounted
  fill /tmp/mounted 3 1
  kill -TERM "$server"
  await_use
  fill /tmp/mounted 3 1
  umount /tmp/mounted
  wait "$server"
  serve "emu:$image" --id 0
  mount -t btrfs $exported /tmp/mounted
  fill /tmp/mounted 3 1 &
  load=$!
  sleep 0.5
  kill -TERM "$server"
  await_use
  sleep 3 # only a later signal is the second one
  kill -TERM "$server"
  wait "$server"
  wait $load || true
  umount /tmp/mounted
  serve "emu:$image" --id 0
  btrfs check $exported
  stop_serving
}

export_refusals() {
  isozone mkfs 'emu:/tmp/odd.img?zones=16&zone_size=3M' >/dev/null
  refused 3 "power of two" isozone export emu:/tmp/odd.img
  refused 2 "no exported device 7" isozone export --remove 7
  make_image 16
  serve "emu:$image" --id 0
  refused 4 "in use" isozone export "emu:$image"
  cp $image /tmp/other.img
  refused 4 "already" isozone export emu:/tmp/other.img --id 0
  refused 4 "is served by process $server" isozone export emu:/tmp/other.img --id 0 --recover
  refused 4 "is served by process $server" isozone export --remove 0
  kill -9 "$server"
  sleep 0.3
  isozone mkfs 'emu:/tmp/small.img?zones=12&zone_size=4M' >/dev/null
  refused 1 "was another device" isozone export emu:/tmp/small.img --id 0 --recover
  refused 1 "and not emu:/tmp/other.img" isozone export emu:/tmp/other.img --id 0 --recover
  serve "emu:$image" --id 0 --recover
  kill -9 "$server"
  sleep 0.3
  isozone export --remove 0
  [ ! -e $exported ]
  mv /dev/ublk-control /dev/hidden
  refused 3 "modprobe ublk_drv" isozone export emu:/tmp/other.img
  mv /dev/hidden /dev/ublk-control
  chmod 666 /tmp/other.img
  refused 8 "as root" su nobody -c "isozone export emu:/tmp/other.img"
}

# What docs/export.md shows, one command after another.
export_documented() {
  cd "$scratch" || return
  rm -f ssd.img
  while read -r command; do
    echo "$ $command"
    case $command in
      "isozone export "*) eval "serve ${command#isozone export }" ;;
      *) sh -c "$command" </dev/null >/tmp/output 2>&1 || { cat /tmp/output && return 1; } ;;
    esac
  done </documented-export
  stop_serving
}

export_steps() {
  step export-conformance export_conformance
  step export-disk export_disk
  step export-isozone export_isozone
  step export-fio export_fio
  step export-btrfs export_btrfs
  step export-f2fs export_f2fs
  step export-xfs export_xfs
  step export-zonefs export_zonefs
  step export-killed-writes export_killed_writes
  step export-killed-appends export_killed_appends
  step export-stopped export_stopped
  step export-refusals export_refusals
  step export-documented export_documented
}
