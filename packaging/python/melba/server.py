"""A server for this process alone, on a Unix-domain socket in a directory that no other account may enter."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from pg8000.dbapi import OperationalError

from .program import PATH

PORT = 5432
START_WITHIN = 60.0
STOP_WITHIN = 60.0
# The shell ends the server when this process has gone, however it ended: its end of the pipe is closed then.
KEEPER = 'exec 3<&0; "$0" "$@" 3<&- </dev/null & server=$!; { read -r _ <&3; kill -TERM $server; } 2>/dev/null & wait $server'


class Server:
    """One running server; `users` counts its connections."""

    def __init__(self, data, settings):
        self.users = 0
        self.private = Path(tempfile.mkdtemp(prefix="melba-"))
        self.is_temporary = data is None
        self.data = Path(data) if data is not None else self.private / "data"
        self.socket = self.private / f".s.PGSQL.{PORT}"
        arguments = [str(PATH), "serve", "--data", str(self.data), "-c", "listen_addresses=", "-c", f"port={PORT}"]
        arguments += ["-c", f"unix_socket_directories={self.private}"]
        for name, value in settings.items():
            arguments += ["-c", f"{name}={value}"]
        with open(self.private / "log", "wb") as log:
            # A session of its own: Ctrl+C at the terminal is for the program, not for its database.
            self.keeper = subprocess.Popen(
                ["/bin/sh", "-c", KEEPER, *arguments], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        self._wait()

    def _wait(self):
        """Until it is ready.

        :raises OperationalError: it has ended, with the last words of its log.
        """
        began = time.monotonic()
        while b"melba is ready" not in (said := (self.private / "log").read_bytes()):
            has_ended = self.keeper.poll() is not None
            if has_ended or time.monotonic() - began > START_WITHIN:
                self.stop()
                words = [line for line in said.decode(errors="replace").splitlines() if line.startswith(("melba: ", "  "))]
                raise OperationalError("\n".join(words) or "the server has not started")
            time.sleep(0.005)

    def stop(self):
        """A clean stop; what is temporary is removed."""
        if self.keeper.stdin:
            self.keeper.stdin.close()
        try:
            self.keeper.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired as late:
            raise OperationalError(f"the server of {self.data} has not stopped after {STOP_WITHIN:.0f} s") from late
        shutil.rmtree(self.private, ignore_errors=True)


_servers = {}
_lock = threading.Lock()


def acquire(data, settings):
    """The server of a directory, which all connections of this process to it share; of a new temporary one without.

    :raises OperationalError: it does not start, as when another process has the directory.
    :raises ValueError: it runs with other settings already.
    """
    with _lock:
        key = object() if data is None else os.path.realpath(data)
        server, given = _servers.get(key, (None, settings))
        if server is None:
            server = Server(data, settings)
            _servers[key] = server, settings
        elif settings and settings != given:
            raise ValueError(f"the server of {data} runs with other settings: {given}")
        server.users += 1
        return server


def release(server):
    """Stops it when its last connection is closed."""
    with _lock:
        server.users -= 1
        if server.users == 0:
            for key in [key for key, (other, _) in _servers.items() if other is server]:
                del _servers[key]
            server.stop()
