# SPDX-License-Identifier: Apache-2.0
"""What a worker meets comes back as its own exception."""
import multiprocessing
import os
import socket
import sys


def reach(_):
    with socket.create_connection(("127.0.0.1", int(os.environ["TARGET"])), timeout=30) as connection:
        return connection.recv(64).decode()


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        try:
            print(pool.map(reach, range(2)))
        except PermissionError as error:
            print("PermissionError:", error, file=sys.stderr)
            sys.exit(3)
