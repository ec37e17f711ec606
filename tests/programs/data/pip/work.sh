#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -e
/usr/bin/python3 -m pip install --no-input --disable-pip-version-check --target site \
  --index-url "http://127.0.0.1:$ORIGIN/simple" greet
PYTHONPATH=site /usr/bin/python3 -c 'import greet; print(greet.greet("pip"))'
