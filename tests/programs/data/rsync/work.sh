#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -e
mkdir -p tree/sub
seq 100000 >tree/numbers
ln -s numbers tree/soft
chmod 0640 tree/numbers
rsync -aH --stats tree/ copy/ | grep 'files transferred'
diff -r tree copy
echo more >>tree/numbers
rm tree/soft
rsync -a --delete --checksum --no-whole-file tree/ copy/
diff -r tree copy
stat -c 'mode: %a' copy/numbers
