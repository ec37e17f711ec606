#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The servers around the demo's module, each on a free port or a socket below DIRECTORY: the origin (serves
DIRECTORY/served), a forbidden TCP server, the module's broker and a unix socket that is not its broker.

Writes DIRECTORY/servers as shell assignments once all of them answer, and one line per connection to
DIRECTORY/connections, which names the server. Ends with SIGTERM.
"""

import functools
import http.server
import pathlib
import signal
import socket
import socketserver
import sys
import threading

directory = pathlib.Path(sys.argv[1])
connections = open(directory / "connections", "a", buffering=1, encoding="utf-8")


class Web(http.server.SimpleHTTPRequestHandler):
    def setup(self):
        super().setup()
        connections.write(self.server.name + "\n")

    def log_message(self, *_):
        pass


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        connections.write(self.server.name + "\n")
        for line in self.rfile:
            self.wfile.write(b"echo: " + line)


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def serve(name, server):
    server.name = name
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


web = functools.partial(Web, directory=directory / "served")
origin = serve("origin", http.server.ThreadingHTTPServer(("127.0.0.1", 0), web))
forbidden = serve("forbidden", http.server.ThreadingHTTPServer(("127.0.0.1", 0), web))
sockets = {}
for name in "broker", "other":
    (directory / name).mkdir()
    sockets[name] = directory / name / (name + ".sock")
    serve(name, UnixServer(str(sockets[name]), Echo))
# For the proxy, which takes no port of the kernel's choice: free a moment ago.
with socket.create_server(("127.0.0.1", 0)) as free:
    proxy = free.getsockname()[1]

ready = directory / "servers.new"
ready.write_text(f"origin={origin.server_port}\nforbidden={forbidden.server_port}\nproxy={proxy}\n"
                 f"broker={sockets['broker']}\nother={sockets['other']}\n", encoding="utf-8")
ready.rename(directory / "servers")
signal.sigwait({signal.SIGTERM, signal.SIGINT})
