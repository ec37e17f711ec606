#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A static library, a shared one, a threaded program with link-time optimisation from a pipe, and all of it run.
set -e
gcc -O2 -Wall -Werror -c part.c -o part.o
ar rcs libpart.a part.o
gcc -shared -fPIC -o libshared.so part.c
gcc -O2 -flto -pipe -pthread -o static main.c -L. -l:libpart.a
gcc -g -pthread -o shared main.c -L. -lshared -Wl,-rpath,"$WORK"
./static
./shared
gcc -Wall -o past past.c
if gcc -c broken.c 2>err; then exit 1; fi
grep -o 'broken.c:[0-9][0-9]*' err | head -1
