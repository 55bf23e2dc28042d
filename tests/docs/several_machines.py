#!/usr/bin/env python3
"""Runs docs/several-machines.md's trial on two network namespaces as one script, in an empty folder.

usage: several_machines.py --dptrain PROGRAM [--verbose]

The ```sh blocks behind `<!-- test: namespaces -->` are run in order, by one shell, in namespaces of this test alone,
which end with it. `<!-- test: namespaces, PROGRAM -->` leaves a block out where that program is missing. Every run must
end in the weights of the first one, which is of one process. Exit code 77: skipped, and why.
"""
import argparse, os, pathlib, re, shutil, subprocess, sys, tempfile
from run_commands import ROOT, blocks, sandbox

PAGE = "docs/several-machines.md"
# As its user or without root, which then is root in a user namespace of its own.
UNSHARE = ["unshare", "--mount", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
PROBE = "mount -t tmpfs tmpfs /run && ip netns add probe && ip netns exec probe unshare --uts true"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def script():
    """(text, number of runs). The blocks that can be run here, each after a line that says where it stands."""
    out, runs = ["set -e", "mount -t tmpfs tmpfs /run", "ip link set lo up"], 0
    for line, kind, text, notes in blocks(PAGE):
        note = re.fullmatch(r"namespaces(?:, (.*))?", "; ".join(notes))
        if kind != "sh" or not note:
            continue
        if note[1] and not shutil.which(note[1]):
            print(f"skipped: {PAGE}:{line}: {note[1]} is not installed")
            continue
        out += [f"echo '== {PAGE}:{line}'", text]
        runs += len(re.findall(r"\bout=", text))
    return "\n".join([*out, "echo '== weights'", "sha256sum */model.safetensors"]) + "\n", runs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    for program in "unshare", "ip", "mount":
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if subprocess.run([*UNSHARE, "sh", "-c", PROBE], capture_output=True).returncode != 0:
        skip("network namespaces cannot be made here")
    dptrain = os.path.abspath(a.dptrain)
    if not re.search(r"\[x\] gloo ", subprocess.run([dptrain, "doctor"], capture_output=True, text=True).stdout):
        skip("dptrain was built without gloo")
    text, runs = script()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "dptrain"
        folder.mkdir()
        done = subprocess.run([*UNSHARE, "bash", "-c", text], cwd=folder, env=sandbox(folder, dptrain), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    sums = re.findall(r"^([0-9a-f]{64})  \S+/model.safetensors$", done.stdout.partition("== weights")[2], re.M)
    good = done.returncode == 0 and runs >= 2 and len(sums) == runs and len(set(sums)) == 1
    if a.verbose or not good:
        print(done.stdout)
    print(f"{runs} runs, {len(sums)} files of weights, {len(set(sums))} different; exit code {done.returncode}")
    sys.exit(not good)


main()
