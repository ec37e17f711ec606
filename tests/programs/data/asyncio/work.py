# SPDX-License-Identifier: Apache-2.0
"""Streams, threads, child processes, signals and a loop of every kind, at once."""
import asyncio
import os
import selectors
import signal
import socket
import subprocess


async def fetch():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["PROXY_PORT"]))
    writer.write(f"GET http://127.0.0.1:{os.environ['ORIGIN']}/file.txt HTTP/1.0\r\n\r\n".encode())
    page = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return page.splitlines()[-1]


async def run(text):
    child = await asyncio.create_subprocess_exec("tr", "a-z", "A-Z", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return (await child.communicate(text.encode()))[0].decode()


async def main():
    async with asyncio.TaskGroup() as group:
        pages = [group.create_task(fetch()) for _ in range(8)]
        words = [group.create_task(run(f"word{i}")) for i in range(8)]
        threads = [group.create_task(asyncio.to_thread(sum, range(i))) for i in range(8)]
    print("pages:", len(pages), pages[0].result())
    print("words:", *(word.result() for word in words))
    print("threads:", *(thread.result() for thread in threads))

    seen = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(seen.wait(), 30)
    print("signal")

    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    theirs.sendall(b"over a pair\n")
    print((await reader.readline()).decode().strip())
    writer.close()
    theirs.close()


for selector in selectors.EpollSelector, selectors.PollSelector, selectors.SelectSelector:
    loop = asyncio.SelectorEventLoop(selector())
    with asyncio.Runner(loop_factory=lambda made=loop: made) as runner:
        runner.run(main())
