"""The programs that compare.py runs: dptrain on a row's spec, and the peers of the row."""

import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

import workloads

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


class Failed(Exception):
    """A program that could not be measured, with the reason."""


def run(command, options):
    """(standard output, wall seconds, peak memory of the process in MiB) on the measured cores."""
    environment = dict(os.environ)
    if options.data:
        environment["DPTRAIN_DATA"] = options.data
    late = threading.Event()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        try:
            child = subprocess.Popen(
                command,
                env=environment,
                stdout=out,
                stderr=err,
                start_new_session=True,  # so that its own children can be ended with it
                preexec_fn=lambda: os.sched_setaffinity(0, options.cores),
            )
        except OSError as error:
            raise Failed(str(error)) from None

        def end():
            late.set()
            os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(options.timeout, end)
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:  # interrupted
            end()
            raise
        finally:
            timer.cancel()
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if late.is_set():
            raise Failed(f"not done after {options.timeout:g} s")
        stdout, stderr = out.read(), err.read()
    if child.returncode != 0:
        raise Failed(f"exit code {child.returncode}: {stderr.strip() or stdout.strip()}")
    return stdout, wall, usage.ru_maxrss * 1024 / MIB


class Dptrain:
    name = "dptrain"

    def __init__(self, row, options, folder):
        self.row, self.options = row, options
        self.spec = workloads.write_spec(row, folder)
        self.out = pathlib.Path(folder) / f"run_{row.name}"

    def measure(self):
        shutil.rmtree(self.out, ignore_errors=True)
        arguments = [f"epochs={self.row.epochs}", f"out={self.out}"]
        _, wall, memory = run([self.options.dptrain, str(self.spec), *arguments], self.options)
        text = (self.out / "metrics.jsonl").read_text()
        epochs = [each for each in map(json.loads, text.splitlines()) if "epoch" in each]
        epochs = [each for each in epochs if "seconds" in each and "step" not in each]
        if len(epochs) != self.row.epochs:
            raise Failed(f"metrics.jsonl has {len(epochs)} epochs instead of {self.row.epochs}")
        return {
            "seconds": [each["seconds"] for each in epochs],
            "loss": [each["loss"] for each in epochs],
            "wall": wall,
            "memory": memory,
        }

    def export(self):
        """The row's PyTorch program."""
        path = self.spec.with_suffix(".py")
        if not path.exists():
            run([self.options.dptrain, "export", str(self.spec), "-o", str(path)], self.options)
        return path

    def flops(self):
        """Floating-point operations of an epoch's forward and backward, by `dptrain plan`."""
        text = run([self.options.dptrain, "plan", str(self.spec)], self.options)[0]
        found = re.search(r"^work: (\S+) MFLOP for (\d+) samples?", text, re.MULTILINE)
        return float(found[1]) * 1e6 / int(found[2]) * self.row.samples if found else None

    def version(self):
        try:
            first = run([self.options.dptrain, "--version"], self.options)[0].splitlines()[0]
        except (Failed, IndexError):
            return "unknown"
        return first.removeprefix("dptrain").strip()


class PeerProgram:
    def __init__(self, row, peer, options, dptrain):
        self.row, self.peer, self.options, self.dptrain = row, peer, options, dptrain
        self.name = peer.name
        self.versions = {}

    def measure(self):
        epochs = self.row.epochs if self.row.cold else self.peer.epochs or self.row.epochs
        command = [self.options.python, str(HERE / self.peer.script), "--epochs", str(epochs)]
        if self.options.data:
            command += ["--data", self.options.data]
        if self.peer.threads:
            command += ["--threads", str(len(self.options.cores))]
        if self.peer.exported:
            command += ["--program", str(self.dptrain.export())]
        stdout, wall, memory = run([*command, *self.peer.arguments], self.options)
        line = json.loads(stdout.strip().splitlines()[-1])
        self.versions = line["versions"]
        return {
            "seconds": line["seconds_per_epoch"],
            "loss": line["loss"],
            "wall": wall,
            "memory": memory,
        }


def peak_of(options):
    """FLOP/s of the measured cores by `dptrain doctor`; None: it does not say."""
    text = run([options.dptrain, "doctor"], options)[0]
    found = re.search(r"([0-9.]+) GFLOP/s on all", text)
    return float(found[1]) * 1e9 if found else None


def has_module(python, module):
    code = f"import importlib.util as u; raise SystemExit(not u.find_spec('{module}'))"
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def time_of(row, result):
    """Seconds of one run: of the whole process, or the median epoch after the first."""
    if row.cold:
        return result["wall"]
    later = result["seconds"][1:] or result["seconds"]
    return statistics.median(later)
