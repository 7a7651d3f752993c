# What is tested of `isozone mount` in a guest, mostly in one whose kernel hands requests over by io_uring: that they
# come that way, from every CPU, and that the mount lives through what happens to programs, to its daemon and to the
# CPUs. Each step makes a device of its own, and leaves nothing mounted.
# shellcheck shell=sh disable=SC2154

directory=/tmp/directory
mounted_image=/tmp/mounted.img
uring_parameter=/sys/module/fuse/parameters/enable_uring
uring_disabled=/proc/sys/kernel/io_uring_disabled
second_cpu=/sys/devices/system/cpu/cpu1/online
bench="--db=$directory/db --seed=1 --value_size=800 --compression_type=none --write_buffer_size=1048576
  --target_file_size_base=1048576 --max_bytes_for_level_base=4194304"

# Serves the emulated device in the background, and returns when the directory is there.
mount_image() {
  mkdir -p $directory 2>/dev/null || true # a dead mount is there
  isozone mount -f "emu:$mounted_image?timing=off" $directory >/tmp/mount 2>&1 &
  daemon=$!
  trap take_off EXIT
  until_true grep -q "is mounted on" /tmp/mount
}

# The same with a new device: zones of 4 MiB.
mount_new() {
  rm -f $mounted_image
  isozone mkfs "emu:$mounted_image?zones=64&zone_size=4M&timing=off" >/dev/null
  mount_image
}

# At the end of a step, also where it failed: the next one finds no mount, and the kernel as it was.
take_off() {
  status=$?
  set +e
  [ $status = 0 ] || cat /tmp/mount
  touch /tmp/enough
  kill -CONT "$daemon" 2>/dev/null
  kill -9 "$daemon" 2>/dev/null
  while umount -l $directory 2>/dev/null; do :; done
  set_kernel $second_cpu 1
  set_kernel $uring_parameter N
  set_kernel $uring_disabled 0
  wait
  exit $status
}

# set_kernel FILE WORD: where the kernel has that file.
set_kernel() { [ ! -e "$1" ] || echo "$2" >"$1"; }

# until_true COMMAND...: waits until it succeeds.
until_true() {
  for _ in $(seq 3000); do
    if "$@"; then return; fi
    sleep 0.1
  done
  echo "in vain: $*"
  return 1
}
# fails COMMAND...: must fail. (The shell goes on behind `! COMMAND`, however that ends.)
fails() {
  if "$@"; then
    echo "has not failed: $*" >&2
    return 1
  fi
}
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# Ends the daemon by SIGTERM.
end_daemon() {
  kill -TERM "$daemon" 2>/dev/null || true
  await_end
}
# The daemon ends well, and what is on the device is whole.
await_end() {
  status=0
  wait "$daemon" || status=$?
  [ $status = 0 ] || { echo "the daemon ended with $status" && return 1; }
  fails grep $directory /proc/mounts
  isozone fsck --read-data "emu:$mounted_image"
}

# The threads of the daemon: number, name, on which CPUs it may run, and how often it has waited.
threads_of_daemon() {
  for task in /proc/"$daemon"/task/*; do
    echo "${task##*/} $(cat "$task/comm") $(sed -n 's/^\(Cpus_allowed_list\|voluntary_ctxt_switches\):[^0-9]*//p' \
      "$task/status" | tr '\n' ' ')"
  done
}

# come_by ring|fuse CPU: the requests of a program on this CPU come to the daemon's threads of that name, and to no
# others. Before each request that it serves, a thread waits; a few messages of the kernel come to isozone-fuse in any
# case. Threads that serve requests by io_uring stay on the CPU of the program, the others nowhere.
come_by() {
  serve="isozone-$1 $2"
  [ "$1" = ring ] || serve="isozone-$1 0-1"
  threads_of_daemon >/tmp/before
  on_cpu "$2" dd if=/dev/zero of=$directory/requests bs=4k count=100 2>/dev/null
  threads_of_daemon >/tmp/after
  awk 'FNR == NR { before[$1] = $4 } FNR != NR && /isozone-(ring|fuse)/ { waits[$2 " " $3] += $4 - before[$1] }
    END { for (threads in waits) print waits[threads], threads }' /tmp/before /tmp/after | sort -n >/tmp/waits
  echo "100 requests of CPU $2:" "$(tr '\n' ';' </tmp/waits)"
  awk -v serve="$serve" '{ waits[$2 " " $3 == serve] += $1 } END { exit waits[1] < 100 || waits[0] >= 50 }' /tmp/waits
}
on_cpu() {
  mask=$((1 << $1))
  shift
  taskset $mask "$@"
}

# start_writers: on each CPU, one that appends numbered lines to a file, syncs each, and notes then that it is there.
# One more writes a database. They end with the mount, or when /tmp/enough is there.
start_writers() {
  rm -f /tmp/enough /tmp/noted.*
  writers=
  for cpu in 0 1; do
    # shellcheck disable=SC2016  # expanded by that shell
    on_cpu $cpu sh -c 'cd $0 && line=0
      while [ ! -e /tmp/enough ]; do
        line=$((line + 1))
        printf "%08d\n" $line | dd of=lines.$1 bs=9 oflag=append conv=notrunc,fsync 2>/dev/null || exit 0
        echo $line >/tmp/noted.new.$1 && mv /tmp/noted.new.$1 /tmp/noted.$1
      done' $directory $cpu &
    writers="$writers $!"
  done
  # shellcheck disable=SC2086
  db_bench $bench --benchmarks=fillseq --num=10000000 --sync=1 >/tmp/bench 2>/tmp/error &
  writers="$writers $!"
}
noted() { cat "/tmp/noted.$1" 2>/dev/null || echo 0; }
has_noted() { [ "$(noted "$1")" -ge "$2" ]; }
keys_noted() { tr '\r' '\n' </tmp/error | sed -n 's/^\.\.\. finished \([0-9]*\) ops.*/\1/p' | sort -n | tail -n 1; }
has_keys() { [ "$(keys_noted | wc -l)" = 1 ]; }

# more_is_written: each of the writers of lines gets on, and that of tables has begun.
more_is_written() {
  for cpu in 0 1; do until_true has_noted $cpu $(($(noted $cpu) + 10)); done
  until_true has_keys
}
end_writers() {
  touch /tmp/enough
  kill "${writers##* }" 2>/dev/null || true
  for writer in $writers; do wait "$writer" || true; done
}
# What they noted is in the directory.
check_written() {
  for cpu in 0 1; do
    lines=$(head -n "$(noted $cpu)" $directory/lines.$cpu | awk '$0 == sprintf("%08d", NR) { n++ } END { print n + 0 }')
    echo "CPU $cpu: $(noted $cpu) lines were synced, $lines of them are there"
    [ "$lines" = "$(noted $cpu)" ]
  done
  keys=$(ldb --db=$directory/db dump --count_only | sed -n 's/^Keys in range: //p')
  echo "$(keys_noted) keys were synced, $keys are there"
  [ "$keys" -ge "$(keys_noted)" ]
  ldb --db=$directory/db checkconsistency
  rm -r $directory/db $directory/lines.*
}

# run_bench CPUS DATABASE OPTION...: on these CPUs, a bit for each.
run_bench() {
  cpus=$1
  database=$2
  shift 2
  # shellcheck disable=SC2086
  taskset "$cpus" db_bench $bench --db=$directory/"$database" "$@" >/tmp/"bench-$database" 2>&1 ||
    { cat /tmp/"bench-$database" && return 1; }
  grep -E "^(fill|over|read).*ops/sec" /tmp/"bench-$database"
  ldb --db=$directory/"$database" checkconsistency
}

mount_io_uring() {
  echo Y >$uring_parameter
  mount_new
  for cpu in 0 1; do come_by ring $cpu; done
  run_bench 3 unsynced --benchmarks=fillrandom,overwrite,readrandom --num=2000 --threads=2
  run_bench 3 mapped --benchmarks=fillrandom,readrandom --num=2000 --mmap_read=1 --mmap_write=1
  synced=
  for cpu in 0 1; do
    run_bench $((1 << cpu)) synced-$cpu --benchmarks=fillseq,overwrite --num=300 --sync=1 &
    synced="$synced $!"
  done
  for process in $synced; do wait "$process"; done
  fio --directory=$directory --output=/tmp/fio --eta=never --numjobs=4 --cpus_allowed=0,1 \
    --cpus_allowed_policy=split --size=1M --verify=crc32c --rw=randwrite --name=mapped --ioengine=mmap --bs=4k \
    --fsync=64 --name=large --stonewall --ioengine=psync --direct=1 --size=3M --bs=1M \
    --name=small --stonewall --ioengine=psync --size=1M --bs=5k ||
    { cat /tmp/fio && return 1; }
  end_daemon
}

mount_killed() {
  echo Y >$uring_parameter
  mount_new
  for _ in 1 2; do
    start_writers
    more_is_written
    kill -9 "$daemon"
    wait "$daemon" || true
    end_writers
    mount_image
    grep "was a dead mount" /tmp/mount
    check_written
  done
  come_by ring 0
  end_daemon
}

# Programs have files open, and write, while the daemon is told to end, or the directory is unmounted.
mount_ended() {
  echo Y >$uring_parameter
  mount_new
  exec 3<>$directory/open
  echo text >&3
  end_daemon
  fails echo more >&3
  exec 3>&-
  mount_image
  [ "$(cat $directory/open)" = text ]

  echo "SIGTERM, while programs write"
  start_writers
  more_is_written
  kill -TERM "$daemon"
  status=0
  wait "$daemon" || status=$?
  echo "the daemon ended with $status" # 4: something that was not synced is lost
  [ $status = 0 ] || [ $status = 4 ]
  end_writers
  isozone fsck --read-data "emu:$mounted_image"
  mount_image
  check_written

  echo "umount, while programs write: not before they have ended"
  start_writers
  more_is_written
  fails umount $directory
  more_is_written
  umount -l $directory
  more_is_written
  fails has_ended "$daemon"
  end_writers
  await_end
  mount_image
  check_written

  echo "umount -f, while programs write: it breaks the connection"
  start_writers
  more_is_written
  fails umount -f $directory
  end_writers
  umount $directory
  await_end
  mount_image
  check_written
  end_daemon
}

# CPUs go and come. A program that was on one goes on elsewhere.
mount_cpus() {
  echo Y >$uring_parameter
  mount_new
  start_writers
  for _ in 1 2; do
    more_is_written
    echo 0 >$second_cpu
    more_is_written
    echo 1 >$second_cpu
  done
  more_is_written
  end_writers
  check_written
  for cpu in 0 1; do come_by ring $cpu; done
  echo 0 >$second_cpu
  end_daemon

  echo "A mount that begins without CPU 1"
  mount_image
  come_by ring 0
  echo 1 >$second_cpu
  for cpu in 0 1; do come_by ring $cpu; done
  end_daemon
}

# Signals to programs that wait for the daemon.
mount_interrupted() {
  echo Y >$uring_parameter
  mount_new
  dd if=/dev/urandom of=/tmp/piece bs=1M count=2 2>/dev/null
  for cpu in 0 1; do
    taskset $((1 << cpu)) dd if=/tmp/piece of=$directory/piece.$cpu bs=1k conv=fsync 2>/dev/null &
    signals=0
    until_true [ -s $directory/piece.$cpu ]
    while kill -USR1 $! 2>/dev/null; do signals=$((signals + 1)); done # dd says how far it is
    wait $!
    echo "dd got $signals signals"
    cmp /tmp/piece $directory/piece.$cpu
  done

  echo "Programs are killed that wait for a daemon that has stopped"
  kill -STOP "$daemon"
  waiting=
  for number in $(seq 16); do
    taskset $((1 + number % 2)) dd if=$directory/piece.0 of=/dev/null 2>/dev/null &
    waiting="$waiting $!"
  done
  until_true all_wait
  # shellcheck disable=SC2086
  kill -9 $waiting
  until_true at_most_wait 8 # what the daemon got before it stopped, it must answer
  kill -CONT "$daemon"
  until_true at_most_wait 0
  for cpu in 0 1; do come_by ring $cpu; done
  cmp /tmp/piece $directory/piece.0
  end_daemon
}
# For an answer of the daemon.
all_wait() {
  for process in $waiting; do grep -q fuse "/proc/$process/stack" || return 1; done
}
at_most_wait() {
  left=0
  for process in $waiting; do has_ended "$process" || left=$((left + 1)); done
  [ $left -le "$1" ]
}

# Where the kernel offers no io_uring, or the daemon may not use it, requests come by /dev/fuse, and the log says why.
mount_fallback() {
  echo N >$uring_parameter
  mount_new
  come_by fuse 1
  grep "come by /dev/fuse: .*enable_uring" /tmp/mount
  end_daemon
  echo Y >$uring_parameter
  echo 2 >$uring_disabled
  mount_image
  come_by fuse 1
  grep "come by /dev/fuse: no io_uring" /tmp/mount
  end_daemon
  echo 1 >$uring_disabled # root may
  mount_image
  come_by ring 1
  echo N >$uring_parameter # a mount keeps it
  come_by ring 0
  grep "come by io_uring" /tmp/mount
  end_daemon
}

# A kernel that knows nothing of it.
mount_old_kernel() {
  mount_new
  for cpu in 0 1; do come_by fuse $cpu; done
  run_bench 3 unsynced --benchmarks=fillrandom,overwrite,readrandom --num=2000
  grep "come by /dev/fuse: this kernel has no" /tmp/mount
  end_daemon
}

# Readers beside writers of each kind: of every page they see what was written last.
mount_pages() {
  mount_new
  ISOZONE_TEST_DIRECTORY=$directory page_cache_test --gtest_brief=1
  end_daemon
}

# Every put is synced, and somebody reads the live log and the MANIFEST all the time, as a backup does. What the page
# cache has of them in the end is what is in the files.
mount_logs_read() {
  mount_new
  # shellcheck disable=SC2086
  db_bench $bench --benchmarks=fillseq --num=2000 --value_size=100 --sync=1 --threads=1 >/tmp/bench 2>&1 &
  while ! has_ended $!; do
    cat $directory/db/*.log $directory/db/MANIFEST-* >/dev/null 2>&1 || true
    usleep 3000
  done
  wait $!
  cached=$(logs_of_database)
  records=$(ldb dump_wal --walfile="$(echo $directory/db/*.log)" | grep -c PUT)
  echo 3 >/proc/sys/vm/drop_caches
  echo "ldb finds $records records of 2000 that were synced"
  [ "$records" = 2000 ]
  [ "$cached" = "$(logs_of_database)" ]
  end_daemon
}
logs_of_database() { (cd $directory/db && md5sum ./*.log MANIFEST-*); }

# What is the same on each kernel.
mount_cache_steps() {
  step mount-pages mount_pages
  step mount-logs-read mount_logs_read
}

mount_steps() {
  mount_cache_steps
  step mount-io-uring mount_io_uring
  step mount-killed mount_killed
  step mount-ended mount_ended
  step mount-cpus mount_cpus
  step mount-interrupted mount_interrupted
  step mount-fallback mount_fallback
}
