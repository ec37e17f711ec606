#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No database beyond the workspace; and what its shell starts is confined as it is.
sqlite3 "$ELSEWHERE/secret.db" 'CREATE TABLE t(n);' && rm "$ELSEWHERE/secret.db"
sqlite3 :memory: ".shell curl -sSv http://127.0.0.1:$TARGET/" >said 2>&1
cat said
! grep -q 'System command returns' said
