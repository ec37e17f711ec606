#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pip says why only where it tries again, and tries every failed connection six times, within seven seconds, whatever its errno is.
exec /usr/bin/python3 -m pip install --no-input --disable-pip-version-check --no-cache-dir --target direct --retries 1 \
  --index-url "http://127.0.0.1:$TARGET/simple" greet
