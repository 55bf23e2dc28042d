"""What disturbs the control channel between pretended hosts: a TCP proxy that can delay, cut and withhold what passes,
and connections of strangers."""

import collections
import contextlib
import select
import socket
import struct
import threading
import time


class Proxy:
    """Listens on 127.0.0.1 and passes connections on to a port there. A thread of its own does the work.

    Connections are known by their host, which its source address shows: host k connects from 127.0.0.(k + 1).
    """

    def __init__(self, port):
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._pairs = {}  # host: (its socket, the socket towards host 0)
        self._held = set()  # hosts whose connections pass nothing on
        self._delay_s = 0.0
        self._late = []  # (time, socket, bytes or, for the end, none), in order
        self._ended_ends = set()  # sockets of which the end was read
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def delay(self, seconds):
        """From now on every byte takes so long."""
        self._delay_s = seconds

    def hold(self, host):
        """Passes nothing on any more, and closes nothing: the other ends fall silent."""
        self._held.add(host)

    def close(self, host, reset):
        """Closes both ends, in order (FIN) or not (RST)."""
        with self._lock:
            pair = self._pairs.pop(host, ())
        for end in pair:
            if reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.close()
            else:
                with contextlib.suppress(OSError):  # its other end was faster
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def stop(self):
        self._ended = True
        self._thread.join()
        self._listener.close()
        for pair in self._pairs.values():
            for end in pair:
                end.close()

    def _run(self):
        while not self._ended:
            with self._lock:
                ends = {end: pair[1 - i] for host, pair in self._pairs.items() for i, end in enumerate(pair)
                        if host not in self._held and end not in self._ended_ends}
            try:
                ready = select.select([self._listener, *ends], [], [], 0.005 if self._late else 0.05)[0]
            except (OSError, ValueError):  # closed meanwhile
                continue
            for end in ready:
                if end is self._listener:
                    self._accept()
                else:
                    self._pass_on(end, ends[end])
            self._send_late()

    def _accept(self):
        near, address = self._listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self._to), timeout=1)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        host = int(address[0].split(".")[3]) - 1
        with self._lock:
            self._pairs[host] = (near, far)

    def _pass_on(self, end, to):
        try:
            data = end.recv(65536)
        except OSError:
            data = b""
        # No bytes: the end, which must not overtake what was sent before.
        self._late.append((time.monotonic() + self._delay_s, to, data))
        if not data:
            self._ended_ends.add(end)

    def _send_late(self):
        while self._late and self._late[0][0] <= time.monotonic():
            _, to, data = self._late.pop(0)
            try:
                if data:
                    to.sendall(data)
                else:
                    to.shutdown(socket.SHUT_WR)
            except OSError:  # its reader is told when it reads
                pass


class Strangers:
    """Connects to a port of 127.0.0.1 all the time, and says nothing. A thread of its own does the work."""

    def __init__(self, port):
        self.port, self.connections, self._ended = port, 0, False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._ended = True
        self._thread.join()

    def _run(self):
        open_ones = collections.deque()
        while not self._ended:
            try:
                open_ones.append(socket.create_connection(("127.0.0.1", self.port), 1, ("127.0.0.254", 0)))
                self.connections += 1
            except OSError:  # nobody listens, or not yet
                time.sleep(0.001)
            if len(open_ones) > 200:
                open_ones.popleft().close()
        for s in open_ones:
            s.close()
