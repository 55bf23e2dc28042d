#!/usr/bin/env python3
"""Tests what runs on a machine with a GPU, and how fast. See USAGE and docs/gpu.md; probes.py lists the probes."""
import concurrent.futures
import datetime
import fnmatch
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import probes
from report import Report, Result, clock_line, pack, plan_lines

USAGE = """\
Usage: probe.sh [--seconds N] [--tiny] [--only NAMES] first [FOLDER]
  probe.sh first report
  probe.sh --seconds 240 --only 'train-mlp*,bench-*' first report-2

Unpack the bundle of tools/gpu/bundle.sh anywhere on a machine with a GPU and run this. Four stages, each with a
deadline, which N moves in proportion:

  25 s   gate      the machine's libraries; five steps of an MLP. If this fails, the run ends with the loader's log
  135 s  parallel  captures, every operator against the reference, training against the losses of CPUs
  285 s  serial    speed, with the GPU alone: launches, bandwidth, whole steps, kernels, the same in PyTorch
  370 s  parallel  compute-sanitizer, replicas and pipelines on one GPU, NCCL with two ranks on one GPU

Each probe is a process with a time limit; one that fails or hangs does not stop the others. A training run that fails
is tried again in safer ways, and the report tells which of them helps. FOLDER (report) gets at most eight files:

  report.md          at most 9 KB, also printed last; rewritten after each probe
  logs.txt           the first and last lines that each probe printed
  plans.txt          which algorithm each operation got (DPTRAIN_LOG_PLANS)
  files.tar.gz       complete logs, losses and benchmark tables
  plan-cache.tar.gz  cuDNN's plans

  --seconds N   probes that do not fit into N seconds (380) are left out and listed in the report
  --only NAMES  these probes, separated by commas, and those whose results they need; * and ? are allowed
  --tiny        small sizes: shows that everything runs; times are meaningless

Exit codes: 0 every probe passed, 1 one failed or was left out, 2 wrong command line or no bundle,
77 no GPU that dptrain can use was found.

Probes:
"""
UNTIL = (25, 135, 285, 370)  # the stages' deadlines in a run of 380 s; the rest is for packing
WHOLE = 380
# What a failed training run is tried again with.
SAFER = (("DPTRAIN_PLAN_THREADS=1", {"DPTRAIN_PLAN_THREADS": "1"}, ""),
         ("DPTRAIN_PLAN_CACHE=off", {"DPTRAIN_PLAN_CACHE": "off"}, ""),
         ("graphs=false and CUDA_LAUNCH_BLOCKING=1", {"CUDA_LAUNCH_BLOCKING": "1"}, "graphs=false"))
# Keeps the driver and its state loaded, so that no other process waits for them.
HOLD_CONTEXT = """
import ctypes, time
cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuDeviceGet(ctypes.byref(device), 0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
time.sleep(3600)
"""


def stop(child):
    """Ends a process and all that it started. One within a call of the driver may survive: it is left alone."""
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        try:
            os.killpg(child.pid, number)
        except OSError:
            pass
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            pass


class Processes:
    """Runs processes in their own groups, from several threads."""

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.running, self.lock, self.ended = set(), threading.RLock(), False

    def start(self, command, output, environment=None):
        with self.lock:
            if self.ended:
                raise OSError("the run was ended")
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                     cwd=self.folder, env={**self.environment, **(environment or {})},
                                     start_new_session=True)
            self.running.add(child)
            return child

    def run(self, command, log, seconds, environment):
        """The exit code; None: it was ended after `seconds`."""
        with open(log, "ab") as output:
            try:
                child = self.start(command, output, environment)
            except OSError as error:
                output.write(f"{command[0]}: {error}\n".encode())
                return 127
            try:
                return child.wait(max(0.1, seconds))
            except subprocess.TimeoutExpired:
                return None
            finally:
                stop(child)
                self.running.discard(child)

    def background(self, command, log):
        try:
            with open(log, "ab") as output:
                self.start(command, output)
        except OSError:
            pass  # it only helps

    def end(self):
        with self.lock:
            self.ended = True
            left = list(self.running)
        with concurrent.futures.ThreadPoolExecutor(max(1, len(left))) as pool:
            list(pool.map(stop, left))


class Runner:
    def __init__(self, work, report, environment):
        self.work, self.report = work, report
        self.processes = Processes(work, environment)
        for name in ("logs", "runs", "plans"):
            (work / name).mkdir()

    def attempt(self, name, command, seconds, environment):
        """Exit code or None, how it ended in words, and the lines of the log."""
        begin = time.monotonic()
        log, plans = self.work / "logs" / name, self.work / "plans" / name
        code = self.processes.run(command, log, seconds, {"DPTRAIN_LOG_PLANS": str(plans), **environment})
        lines = log.read_text(errors="replace").splitlines()
        took = time.monotonic() - begin
        how = f"not done after {took:.0f} s" if code is None else f"exit code {code} after {took:.0f} s"
        # Tests that find no GPU, or that are not there, pass: that must not look like a GPU that passed.
        if code == 0 and any(re.search(r"skipped: |test cases: +0 ", line) for line in lines):
            code, how = 1, "it tested nothing"
        self.report.log("logs.txt", name, how, [*lines[:60], "[...]", *lines[-120:]] if len(lines) > 200 else lines)
        if plans.exists():
            self.report.log("plans.txt", name, how, plans.read_text(errors="replace").splitlines()[:3000])
        return code, how, lines

    def run(self, probe, deadline):
        if probe.skip:
            return Result("skipped", why=probe.skip)
        begin = time.monotonic()
        limit = min(probe.seconds, deadline - begin)
        code, how, lines = self.attempt(probe.name, probe.command, limit, probe.environment)
        found = [re.sub("^probe: ", "", line) for line in lines if probe.facts and re.search(probe.facts, line)]
        planned = sorted({line for line in lines if "not as planned: " in line})
        try:
            found += probe.figures(self.work, time.monotonic() - begin) if probe.figures else []
        except (OSError, LookupError, ValueError, StopIteration) as error:
            found += [f"no figures: {error!r}"] if code == 0 else []
        if code == 77:
            return Result("skipped", time.monotonic() - begin, lines[-1] if lines else "exit code 77")
        if code != 0 and probe.training:
            found += self.safer(probe, deadline)
        seconds = time.monotonic() - begin
        if code == 0:
            return Result("passed", seconds, found=found + planned)
        return Result("failed", seconds, how, lines[-8:], found + planned)

    def safer(self, probe, deadline):
        """Which of the safer ways helps, as one line."""
        out = []
        for number, (what, environment, word) in enumerate(SAFER):
            seconds = min(probe.seconds, 30, deadline - time.monotonic())
            if seconds < 2:
                out.append(f"{what}: no time was left")
                break
            name = f"{probe.name}-safer-{number}"
            command = [*probe.command[:-1], f"{probe.command[-1]}-safer-{number}"]
            if word and word not in command:
                command.insert(-1, word)
            code, how, _ = self.attempt(name, command, seconds, {**probe.environment, **environment})
            out.append(f"{what}: {'passes' if code == 0 else how}")
            if code == 0:
                break
        return ["tried again with " + "; ".join(out)]

    def stage(self, chosen, deadline, slots):
        """Runs probes, as many at a time as there are slots, and each after those that it needs."""
        waiting, running = list(chosen), {}

        def fits(probe):
            return not running or sum(p.cores for p in running.values()) + probe.cores <= slots

        def settle(probe):
            """Whether the probe no longer waits."""
            states = [self.report.results[n].state if n in self.report.results else "" for n in probe.needs]
            bad = [n for n, state in zip(probe.needs, states) if state not in ("", "passed")]
            if bad or deadline - time.monotonic() < 2:
                self.report.add(probe.name, Result("left out", why=f"needs {bad[0]}" if bad else "no time was left"))
            elif all(states) and fits(probe):
                running[pool.submit(self.run, probe, deadline)] = probe
            else:
                return False
            return True

        with concurrent.futures.ThreadPoolExecutor(max(1, len(chosen))) as pool:
            while waiting or running:
                waiting = [probe for probe in waiting if not settle(probe)]
                if running:
                    done, _ = concurrent.futures.wait(running, 1, concurrent.futures.FIRST_COMPLETED)
                    for future in done:
                        self.report.add(running.pop(future).name, future.result())


def choose(table, only):
    """The probes that --only names and those that they need."""
    if not only:
        return table
    wanted = set()
    for name in only.split(","):
        matching = {p.name for p in table if fnmatch.fnmatchcase(p.name, name)}
        if not matching:
            wrong(f"there is no probe {name}")
        wanted |= matching
    for probe in reversed(table):  # what a probe needs is before it
        wanted |= set(probe.needs) if probe.name in wanted else set()
    return [p for p in table if p.name in wanted or p.name == "doctor"]


def deadlines(seconds, chosen):
    """When each stage ends, in seconds from the start. A stage without probes takes no time."""
    lengths = [end - (UNTIL[i - 1] if i else 0) for i, end in enumerate(UNTIL)]
    lengths = [length if any(p.stage == i for p in chosen) else 0 for i, length in enumerate(lengths)]
    scale = seconds * UNTIL[-1] / WHOLE / sum(lengths)
    return [sum(lengths[:i + 1]) * scale for i in range(len(lengths))]


def loader_log(runner, probe):
    """Which libraries the loader looked for and did not find, for a program that fails at its start."""
    log = runner.work / "logs" / "loader"
    runner.processes.run(probe.command, log, 10, {**probe.environment, "LD_DEBUG": "libs"})
    lines = log.read_text(errors="replace").splitlines()
    runner.report.log("logs.txt", "loader", "LD_DEBUG=libs", lines)
    told = [line for line in lines if re.search("error|fatal|find library=lib(cu|nv|nccl)", line)]
    return ["The loader's log (LD_DEBUG=libs):", *(re.sub(r"^ *\d+:\s*", "", line) for line in told[-30:])]


def background(runner, bundle):
    libraries = [name for folder in bundle.packages for name in glob.glob(f"{folder}/lib/*.so*")]
    if libraries:
        runner.processes.background(["bash", "-c", 'cat "$@" >/dev/null', "cat", *libraries], os.devnull)
    runner.processes.background([sys.executable, "-c", HOLD_CONTEXT], os.devnull)
    if shutil.which("nvidia-smi"):
        runner.processes.background(["nvidia-smi", "dmon", "-s", "pucm", "-o", "T"], runner.work / "logs/dmon")


def wrong(message):
    sys.stderr.write(f"probe.sh: {message}; see --help\n")
    sys.exit(2)


def arguments(words):
    """seconds, tiny, only and the folder."""
    seconds, tiny, only, names = WHOLE, False, "", []
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
            table = probes.Table(probes.Bundle(), False).all
            print(USAGE + "\n".join(f"  {p.name}" for p in table))
            sys.exit(0)
        if word == "--tiny":
            tiny = True
        elif word in ("--seconds", "--only"):
            value = words.pop(0) if words else ""
            if word == "--only" and value:
                only = value
            elif word == "--seconds" and re.fullmatch("[1-9][0-9]{0,5}", value):
                seconds = int(value)
            else:
                wrong(f"{word} {value} is not understood")
        elif word.startswith("-"):
            wrong(f"unknown option {word}")
        else:
            names.append(word)
    if names[:1] != ["first"] or len(names) > 2:
        wrong("the command is `first`, and at most one FOLDER follows")
    return seconds, tiny, only, pathlib.Path(names[1] if len(names) > 1 else "report").resolve()


def environment_of(bundle, work):
    environment = {**os.environ,
                   "TORCHINDUCTOR_CACHE_DIR": str(work / "inductor"), "TRITON_CACHE_DIR": str(work / "triton"),
                   # Plans of this run only; the machine may have any others.
                   "DPTRAIN_PLAN_CACHE": str(work / "plan-cache")}
    if bundle.packages and "DPTRAIN_CUDA_PATH" not in environment:
        environment["DPTRAIN_CUDA_PATH"] = ":".join(f"{folder}/lib" for folder in bundle.packages)
    return environment


def run_stages(runner, bundle, chosen, seconds):
    """The exit code."""
    report, begin = runner.report, time.monotonic()
    until = [begin + d for d in deadlines(seconds, chosen)]
    background(runner, bundle)
    gate = [p for p in chosen if p.stage == probes.GATE]
    # Libraries may be read from a slow disk: that is no failure, and only takes time of the next stage.
    until[0] = min(begin + 2 * (until[0] - begin), until[-1])
    runner.stage(gate, until[0], 1)
    gpus = any(line.startswith("[x] cuda:") for line in report.results["doctor"].found)
    failed = [p for p in gate if report.results[p.name].state == "failed"]
    if failed or not gpus:
        report.note += loader_log(runner, (failed or gate)[0])
        what = "The gate failed" if gpus else "No GPU that dptrain can use was found"
        report.head.append(f"{what}: nothing else was tested.")
        return 1 if gpus else 77
    for stage in (probes.PARALLEL, probes.SERIAL, probes.LAST):
        # More than there are cores, since most of a probe's time is waiting for the GPU, or for libraries to load.
        slots = 1 if stage == probes.SERIAL else probes.CORES * 5 // 4
        runner.stage([p for p in chosen if p.stage == stage], until[stage], slots)
    report.note += [*clock_line(runner.work), *plan_lines(runner.work)]
    return 1 if report.count("failed") + report.count("left out") else 0


def main():
    seconds, tiny, only, out = arguments(sys.argv[1:])
    bundle = probes.Bundle()
    if bundle.missing:
        wrong(f"{bundle.missing[0]} was not found: run this from an unpacked bundle of tools/gpu/bundle.sh")
    chosen = choose(probes.Table(bundle, tiny).all, only)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("report.md", "logs.txt", "plans.txt", "files.tar.gz", "plan-cache.tar.gz"):
        if (out / name).exists():
            (out / name).unlink()
    commit = bundle.here / "commit"
    commit = commit.read_text().strip() if commit.exists() else "unknown"
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")
    report = Report(out, f"# dptrain on a GPU, {now}, commit {commit}", tiny)
    # Whole logs and runs lie here until the end, since a folder that is carried back may hold few files.
    work = pathlib.Path(tempfile.mkdtemp(prefix="dptrain-probe-"))
    runner = Runner(work, report, environment_of(bundle, work))

    def end(number, _frame):
        runner.processes.end()
        sys.exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    code = 1
    try:
        code = run_stages(runner, bundle, chosen, seconds)
        report.done = True
    finally:
        runner.processes.end()
        pack(out / "files.tar.gz", work, ["logs", "plans", "runs"])
        pack(out / "plan-cache.tar.gz", work, ["plan-cache"])
        shutil.rmtree(work, ignore_errors=True)
        report.write()
        print((out / "report.md").read_text(), end="", flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
