#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two writers at a time on one database, with its log and the memory that they share.
set -e
sqlite3 sample.db 'PRAGMA journal_mode=wal; CREATE TABLE t(n INTEGER PRIMARY KEY, who TEXT);'
write() {
  for i in $(seq 100); do echo "INSERT INTO t(who) VALUES('$1$i');"; done | sqlite3 -cmd '.timeout 30000' sample.db
}
write a &
write b &
wait -n
wait -n
sqlite3 sample.db 'SELECT count(*) FROM t; PRAGMA mmap_size=1048576; SELECT count(DISTINCT who) FROM t; VACUUM; PRAGMA integrity_check;'
sqlite3 sample.db .dump | sqlite3 copy.db
sqlite3 copy.db "ATTACH 'sample.db' AS other; SELECT count(*) FROM main.t JOIN other.t USING(n, who);"
