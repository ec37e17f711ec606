# SPDX-License-Identifier: Apache-2.0
"""What of multiprocessing needs shared memory: pools, queues, locks, values, blocks."""
import concurrent.futures
import multiprocessing
import multiprocessing.shared_memory
import os
import urllib.request


def square(n):
    return n * n


def fetch(_):
    url = f"http://127.0.0.1:{os.environ['ORIGIN']}/file.txt"
    return urllib.request.urlopen(url, timeout=30).read().decode().strip()


def serve(questions, answers):
    for n in iter(questions.get, None):
        answers.put((os.getpid(), square(n)))


def count(value, lock, rounds):
    for _ in range(rounds):
        with lock:
            value.value += 1


def fill(name):
    block = multiprocessing.shared_memory.SharedMemory(name)
    block.buf[:5] = b"block"
    block.close()


def main():
    for method in "fork", "spawn":
        context = multiprocessing.get_context(method)
        with context.Pool(4) as pool:
            print(method, "pool:", sum(pool.map(square, range(1000), chunksize=7)))
            print(method, "pages:", *set(pool.map(fetch, range(8))))
        questions, answers = context.Queue(), context.Queue()
        servers = [context.Process(target=serve, args=(questions, answers)) for _ in range(3)]
        for server in servers:
            server.start()
        for n in range(200):
            questions.put(n)
        got = [answers.get(timeout=60) for _ in range(200)]
        for _ in servers:
            questions.put(None)
        for server in servers:
            server.join()
        print(method, "queue:", sum(n for _, n in got), [server.exitcode for server in servers])
        value, lock = context.Value("i", 0, lock=False), context.Lock()
        counters = [context.Process(target=count, args=(value, lock, 500)) for _ in range(4)]
        for counter in counters:
            counter.start()
        for counter in counters:
            counter.join()
        print(method, "value:", value.value)
        block = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
        filler = context.Process(target=fill, args=(block.name,))
        filler.start()
        filler.join()
        print(method, "block:", bytes(block.buf[:5]).decode())
        block.close()
        block.unlink()
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        print("executor:", *executor.map(abs, [-1, 2]))


if __name__ == "__main__":
    main()
