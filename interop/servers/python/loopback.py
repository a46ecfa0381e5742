"""A socket on the loopback, and a line that tells where it is."""

import os
import socket


def bound(path: str) -> socket.socket:
    """Binds the port that the variable PORT names, or any, and says so on stdout, where the tests read it."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    listener.listen()
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    return listener
