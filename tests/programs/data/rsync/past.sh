#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
exec rsync -a "rsync://127.0.0.1:$TARGET/module/" direct/
