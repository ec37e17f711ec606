#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -e
make -s -j4
make -q whole && echo "up to date"
