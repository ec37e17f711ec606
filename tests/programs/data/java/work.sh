#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -e
mkdir classes
javac -d classes Work.java Past.java
exec java -cp classes Work
