#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What archives hold: links, modes, times, holes, long names; through compressors and pipes.
set -e
mkdir -p tree/sub
seq 1000 >tree/numbers
ln tree/numbers tree/hard
ln -s numbers tree/soft
mkfifo tree/fifo
truncate -s 1M tree/hole
chmod 0751 tree/sub
touch -d 2001-02-03T04:05:06Z tree/sub
long=tree/$(printf 'n%.0s' $(seq 150))
echo long >"$long"
for z in --gzip --xz --bzip2 ''; do
  tar -c $z -S -f out.tar tree
  rm -rf copy && mkdir copy
  tar -x -p -C copy -f out.tar
  diff -r --no-dereference -x fifo tree copy/tree
  [ "$(stat -c '%a %Y %h' tree/sub tree/numbers)" = "$(stat -c '%a %Y %h' copy/tree/sub copy/tree/numbers)" ]
  [ -p copy/tree/fifo ] && [ "$(readlink copy/tree/soft)" = numbers ]
done
tar -c tree | tar -t | wc -l
