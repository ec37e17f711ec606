# SPDX-License-Identifier: Apache-2.0
import asyncio
import os
import sys


async def main():
    reader, _ = await asyncio.open_connection("127.0.0.1", int(os.environ["TARGET"]))
    print((await reader.readline()).decode())

try:
    asyncio.run(asyncio.wait_for(main(), 30))
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
