#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Outside: a wheel for the origin, in an index of the simple form.
set -e
mkdir -p "$SERVED/simple/greet"
/usr/bin/python3 - "$SERVED/simple/greet/greet-1.0-py3-none-any.whl" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("greet.py", "def greet(name): return 'greetings, ' + name\n")
    info = "greet-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "".join(f"{name},,\n" for name in wheel.namelist()) + info + "RECORD,,\n")
END
echo '<!DOCTYPE html><a href="greet-1.0-py3-none-any.whl">greet-1.0-py3-none-any.whl</a>' >"$SERVED/simple/greet/index.html"
