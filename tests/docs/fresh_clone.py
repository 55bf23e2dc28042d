#!/usr/bin/env python3
"""Pastes the commands of README.md, one after the other, into a shell in a fresh clone, as a new user does.

usage: fresh_clone.py [--only-first N]

Clones the last commit to an empty folder, with an empty cache and without ccache. tools/first_run.sh builds there,
tools/test.sh runs every test, and `meson install` installs to a folder of this test. Outputs are compared as
run_commands.py does. A warning of a compiler is a failure: only here gcc and nvcc compile with the README's own flags.
Fashion-MNIST is found in DPTRAIN_DATA, as if it had been downloaded; without it, stand-ins are used. The last line
counts the README's commands and the tests of tools/test.sh: 'N passed, N failed'.
"""
import argparse, os, pathlib, re, subprocess, sys, tempfile, time
from run_commands import allowed, commands, difference
from sandbox import ROOT, write_stand_ins

WARNING = re.compile(r"^\S+\.(cpp|h|cu|cuh):\d+:\d+: .*warning: |^ptxas warning")
COUNTS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")
LIMIT = 3600  # seconds for one command


def clone(folder):
    """The clone, and the environment of a shell in it."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder / "dptrain"], check=True)
    environment = dict(os.environ, XDG_CACHE_HOME=str(folder / "cache"), CCACHE_DISABLE="1")
    environment["PATH"] = f"{folder}/installed/usr/local/bin:{environment['PATH']}"
    images = pathlib.Path(environment.get("DPTRAIN_DATA", "")) / "fashion-mnist"
    if "DPTRAIN_DATA" in environment and images.is_dir():
        (folder / "dptrain/datasets/fashion_mnist").symlink_to(images)
    else:
        write_stand_ins(folder / "data/fashion-mnist")
        environment["DPTRAIN_DATA"] = str(folder / "data")
        (folder / "dptrain/tools/fetch_data.sh").write_text("#!/bin/sh\necho 'nothing is downloaded in this test'\n")
    return folder / "dptrain", environment


def paste(text, folder, environment):
    """(exit status, output), which is also printed as it comes, but not a count on a line of its own."""
    if "meson install" in text:
        environment = environment | {"DESTDIR": str(folder.parent / "installed")}
    shell = subprocess.Popen(["timeout", str(LIMIT), "bash", "-e", "-c", text], cwd=folder, env=environment, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = []
    for line in shell.stdout:
        output.append(line.rstrip("\n"))
        print("  " + output[-1], flush=True)
    return shell.wait(), "\n".join(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only-first", type=int, metavar="N", help="paste only the first N commands")
    a = parser.parse_args()
    passed, failed, skipped, times = 0, 0, 0, []
    with tempfile.TemporaryDirectory() as name:
        folder, environment = clone(pathlib.Path(name))
        for c in commands("README.md")[:a.only_first]:
            print(f"== {c.where}: {c.text}", flush=True)
            start = time.monotonic()
            status, output = paste(c.text, folder, environment)
            times.append(f"{time.monotonic() - start:7.1f} s  {c.where}: {c.text.splitlines()[0]}")
            if counts := [m for line in output.split("\n") if (m := COUNTS.fullmatch(line))]:
                of_tests = [int(n or 0) for n in counts[-1].groups()]
                passed, failed, skipped = passed + of_tests[0], failed + of_tests[1], skipped + of_tests[2]
            wrong = [] if allowed(c, status) else [f"exit code {status}"]
            wrong += [w for w in [difference(c, output, exact=False)] if w]
            wrong += [line for line in output.split("\n") if WARNING.search(line)]
            passed, failed = passed + (not wrong), failed + bool(wrong)
            for w in wrong:
                print(f"FAILED: {c.where}: {w}", flush=True)
            if not allowed(c, status) and "tools/test.sh" not in c.text:
                break  # the next commands need what this one makes
    print(*times, sep="\n")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
