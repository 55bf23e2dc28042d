#!/usr/bin/env python3
"""Runs docs/several-machines.md's trial on two network namespaces as one script, in an empty folder.

usage: several_machines.py --dptrain PROGRAM [--verbose]

The ```sh blocks behind `<!-- test: run by tests/docs/several_machines.py -->` are run in order. The first opens the
shell that reads the others, in namespaces of this test alone, which end with it: also those of tools/two_hosts.sh.
Blocks with `needs PROGRAM` are left out where that program is missing. Every run must end in the weights of the first
one, which is of one process. Exit code 77: skipped, and why.
"""
import argparse, os, pathlib, re, shutil, subprocess, sys, tempfile
from run_commands import commands, missing
from sandbox import ROOT, sandbox

PAGE = "docs/several-machines.md"
PROBE = "set -e\nip netns add probe\nip netns exec probe unshare --uts true\n"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def script(parts):
    """(text, number of runs). The blocks that can be run here, each after a line that says where it stands."""
    out, runs = ["set -e"], 0
    for part in parts:
        lacks = [name for name in part.values("needs") if missing(name, ROOT)]
        if lacks:
            print(f"skipped: {part.where}: {lacks[0]} is not installed")
            continue
        out += [f"echo '== {part.where}'", part.text]
        runs += len(re.findall(r"\bout=", part.text))
    return "\n".join([*out, "echo '== weights'", "sha256sum */model.safetensors"]) + "\n", runs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    for program in "unshare", "ip", "mount":
        if not shutil.which(program):
            skip(f"{program} is not installed")
    shell, *parts = (c for c in commands(PAGE) if "tests/docs/several_machines.py" in c.values("run by"))
    if subprocess.run(["bash", "-c", shell.text], input=PROBE, text=True, capture_output=True).returncode != 0:
        skip("network namespaces cannot be made here")
    dptrain = os.path.abspath(a.dptrain)
    if not re.search(r"\[x\] gloo ", subprocess.run([dptrain, "doctor"], capture_output=True, text=True).stdout):
        skip("dptrain was built without gloo")
    text, runs = script(parts)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "dptrain"
        folder.mkdir()
        environment = sandbox(folder, dptrain)
        done = subprocess.run(["bash", "-c", shell.text], cwd=folder, env=environment, input=text, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    sums = re.findall(r"^([0-9a-f]{64})  \S+/model.safetensors$", done.stdout.partition("== weights")[2], re.M)
    good = done.returncode == 0 and runs >= 2 and len(sums) == runs and len(set(sums)) == 1
    if a.verbose or not good:
        print(done.stdout)
    print(f"{runs} runs, {len(sums)} files of weights, {len(set(sums))} different; exit code {done.returncode}")
    sys.exit(not good)


main()
