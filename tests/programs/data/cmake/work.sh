#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -e
cmake -S . -B build -G "Unix Makefiles" >configured
grep -o 'Looking for strlen - found' configured
cmake --build build -j2 >built
build/sample
cd build
ctest --output-on-failure | grep -o '100% tests passed'
