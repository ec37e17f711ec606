#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tar speaks to nobody itself: what it starts does.
echo content >past.txt
tar -cf past.tar past.txt
exec tar -xf past.tar --to-command="curl -sS -T - http://127.0.0.1:$TARGET/"
