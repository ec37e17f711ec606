#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -e
cd through
npm ci --no-audit --no-fund --registry "http://127.0.0.1:$ORIGIN/"
node -e 'console.log(require("greet")("npm"), require("greet/built.js"))'
