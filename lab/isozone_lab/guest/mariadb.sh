# Commands of jobs that measure MariaDB with MyRocks: a server whose RocksDB is in /mnt/rocksdb, and clients of it. What
# else the server keeps is in memory. It has no users and no InnoDB, and a database `lab`.
# shellcheck shell=sh

socket=/tmp/mariadb.socket

# start_mariadb OPTION...: returns when the server answers.
start_mariadb() {
  mkdir -p /tmp/data/lab
  echo root:x:0:0:root:/root:/bin/sh >/etc/passwd
  mariadbd --no-defaults --user=root --datadir=/tmp/data --socket=$socket --pid-file=/tmp/mariadb.pid \
    --skip-networking --skip-grant-tables --skip-innodb --default-storage-engine=rocksdb \
    --plugin-load-add=ha_rocksdb --rocksdb-datadir=/mnt/rocksdb "$@" >/tmp/mariadb.log 2>&1 &
  mariadb=$!
  await "$mariadb" "ready for connections" /tmp/mariadb.log
}

stop_mariadb() {
  kill -TERM "$mariadb"
  wait "$mariadb"
}

# sql STATEMENTS: each ends with `//`; what they answer is printed without headings.
sql() {
  echo "$1" | mariadb --no-defaults --user=root --socket=$socket --batch --skip-column-names --delimiter=// lab
}

# clients COUNT STATEMENTS: so many clients do the same at once. @client is the number of each, from 0 on.
clients() {
  clients=
  for number in $(seq 0 $(($1 - 1))); do
    sql "set @client = $number// $2" &
    clients="$clients $!"
  done
  for client in $clients; do wait "$client" || return 1; done
}
