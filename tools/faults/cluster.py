"""The ranks of a run on several hosts, each a process that this machine starts."""

import os
import pathlib
import signal
import socket
import stat
import subprocess
import time


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Rank:
    def __init__(self, number, host, local, process, out, err):
        self.number, self.host, self.local = number, host, local
        self.process, self.out, self.err = process, out, err
        self.ended = None  # time.monotonic()

    def look(self):
        """The exit code, negative for signals; None: it runs."""
        code = self.process.poll()
        if code is not None and self.ended is None:
            self.ended = time.monotonic()
        return code

    def __str__(self):
        return f"rank {self.number} of host {self.host}"


class Cluster:
    """layout: the number of ranks of each host. network: where hosts are namespaces; None: they are pretended."""

    def __init__(self, dptrain, words, layout, folder, network=None):
        self.dptrain, self.words, self.layout, self.network = dptrain, words, layout, network
        self.folder = pathlib.Path(folder)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        self.mark = f"DPTRAIN_FAULTS={self.folder}"
        self.ranks, self.port, self._starts = [], 0, 0

    def start(self, more=(), proxy_of=None):
        """proxy_of(port): a proxy in front of host 0's port, which the other hosts use."""
        self.port = free_port()
        through = proxy_of(self.port).port if proxy_of else self.port
        self.ranks, number = [], 0
        self._starts += 1
        for host, ranks in enumerate(self.layout):
            for local in range(ranks):
                self.ranks.append(self._rank(number, host, local, through if host else self.port, more))
                number += 1

    def _rank(self, number, host, local, port, more):
        environment = dict(os.environ, RANK=str(number), WORLD_SIZE=str(sum(self.layout)), LOCAL_RANK=str(local),
                           LOCAL_WORLD_SIZE=str(self.layout[host]), XDG_RUNTIME_DIR=str(self.runtime),
                           DPTRAIN_OUTLIVE_LAUNCHER="1", MASTER_PORT=str(port),
                           MASTER_ADDR=self.network.address(0) if self.network else "127.0.0.1")
        name, value = self.mark.split("=")
        environment[name] = value
        command = [self.dptrain, *self.words, *more]
        if self.network:
            environment["DPTRAIN_TRUST_NETWORK"] = "1"
            command = ["ip", "netns", "exec", self.network.name(host), *command]
        else:
            environment["DPTRAIN_NODE"] = str(host)
        out, err = (self.folder / f"{self._starts}.{number}.{end}" for end in ("out", "err"))
        with out.open("w") as o, err.open("w") as e:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=o, stderr=e)
        return Rank(number, host, local, process, out, err)

    def of_host(self, host):
        return [r for r in self.ranks if r.host == host]

    def epoch(self):
        """The last epoch that host 0 has reported; 0: none."""
        lines = [line for line in self.ranks[0].out.read_text().splitlines() if line.startswith("Epoch [")]
        return int(lines[-1].split("[")[1].split("/")[0]) if lines else 0

    def wait(self, ranks, limit_s):
        """Waits for their end. Returns whether all have ended."""
        deadline = time.monotonic() + limit_s
        while any([r.look() is None for r in ranks]):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def wait_for_epoch(self, epoch, limit_s=60):
        deadline = time.monotonic() + limit_s
        while self.epoch() < epoch:
            if time.monotonic() > deadline or any([r.look() is not None for r in self.ranks]):
                return False
            time.sleep(0.005)
        return True

    def messages(self, host, but=()):
        """What ranks of a host say about the end of the run."""
        return [line for r in self.of_host(host) if r not in but for line in r.err.read_text().splitlines()
                if line.startswith("dptrain: ")]

    def kill(self):
        for r in self.ranks:
            if r.look() is None:
                r.process.send_signal(signal.SIGKILL)
            r.process.wait()

    def left_behind(self):
        """Processes, sockets and listeners of this cluster that outlived its ranks."""
        out = [f"process {p.name}" for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and self._is_own(p)]
        for path in self.runtime.rglob("*"):
            if stat.S_ISSOCK(path.lstat().st_mode):
                out.append(f"socket {path}")
        listening = f":{self.port:04X} 00000000:0000 0A"
        if not self.network and listening in pathlib.Path("/proc/net/tcp").read_text():
            out.append(f"a listener at port {self.port}")
        return out

    def _is_own(self, process):
        try:
            return self.mark.encode() in (process / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or belongs to somebody else
            return False


def shared_memory():
    """Names in /dev/shm."""
    folder = pathlib.Path("/dev/shm")
    return set(os.listdir(folder)) if folder.is_dir() else set()
