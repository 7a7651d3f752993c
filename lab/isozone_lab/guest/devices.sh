# The commands that jobs consist of: an emulated zoned SSD, its export as a block device, file systems of the kernel on
# it, and programs whose output the lab reads. Each ends the job where it fails. isozone_lab/guest/jobs.py writes jobs.
# shellcheck shell=sh

image=/tmp/ssd.img
exported=/dev/ublkb0

# make_image OPTIONS: makes the emulated SSD; OPTIONS as in its URI.
make_image() {
  isozone mkfs "emu:$image?$1" >/dev/null
}

# await PROCESS WORDS FILE: until the process has written these words to the file. If it ends before, it fails.
await() {
  for _ in $(seq 600); do
    ! grep -q "$2" "$3" || return 0
    kill -0 "$1" || break
    sleep 0.1
  done
  cat "$3"
  return 1
}

# serve OPTIONS: exports the emulated SSD, and returns when the block device is there.
serve() {
  isozone export "emu:$image?$1" --id 0 >/tmp/export 2>&1 &
  server=$!
  await $server "^$exported is " /tmp/export
}

# Takes the block device away, so that the image is closed.
stop_serving() {
  kill -TERM "$server"
  wait "$server"
}

# metadata_device MIB: a device without zones, in memory, that takes no time: /dev/nullb0.
metadata_device() {
  folder=/sys/kernel/config/nullb/nullb0
  mkdir "$folder"
  for pair in memory_backed=1 blocksize=4096 "size=$1"; do echo "${pair#*=}" >"$folder/${pair%%=*}"; done
  echo 1 >"$folder/power"
}

mount_xfs() {
  metadata_device 512
  mkfs.xfs -q -f -r "zoned=1,rtdev=$exported" /dev/nullb0
  mkdir /mnt
  mount -t xfs -o "rtdev=$exported" /dev/nullb0 /mnt
}

mount_f2fs() {
  metadata_device 256
  mkfs.f2fs -q -f -m -c $exported /dev/nullb0
  mkdir /mnt
  mount -t f2fs /dev/nullb0 /mnt
}

# No device at all.
mount_memory() {
  mkdir /mnt
  mount -t tmpfs -o size=100% tmpfs /mnt
}

# mount_isozone DEVICE: the file system on it as a directory. The kernel offers io_uring for its requests.
mount_isozone() {
  echo Y >/sys/module/fuse/parameters/enable_uring
  mkdir /mnt
  isozone mount -f "$1" /mnt >/tmp/mount 2>&1 &
  daemon=$!
  await $daemon "requests to .* come by" /tmp/mount
}

# Ends when everything is durable.
unmount_isozone() {
  umount /mnt
  wait "$daemon"
}

# run NAME COMMAND ARGUMENT...: runs a program. Its errors and progress appear as they come; its output follows when it
# has ended, between two lines that begin with `begin:` and `end:`. A line that begins with `run:` says when it begins.
run() {
  name=$1
  shift
  echo "run: $name at $(cut -d' ' -f1 /proc/uptime) s"
  "$@" >/tmp/output || {
    status=$?
    cat /tmp/output
    echo "$name has ended with $status"
    return 1
  }
  echo "begin: $name"
  cat /tmp/output
  echo "end: $name"
}
