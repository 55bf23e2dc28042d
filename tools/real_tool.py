"""What the kinds of tools/real_files.py share: how they run dptrain, and what they find."""
import math
import pathlib
import subprocess
from dataclasses import dataclass


@dataclass
class Result:
    verdict: str  # "same", "refused" or "WRONG"
    text: str = ""


class Refused(Exception):
    pass


class Wrong(Exception):
    pass


@dataclass
class Tool:
    program: str
    folder: pathlib.Path

    def run(self, *words):
        """Standard output. Raises Refused with the first line of standard error that is no warning."""
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, text=True, timeout=600,
                              capture_output=True, check=False, errors="replace")
        if done.returncode < 0:
            raise Wrong(f"{words[0]} ended by signal {-done.returncode}")
        if done.returncode != 0:
            lines = [x for x in done.stderr.splitlines() if x.startswith("dptrain: ") or ": error: " in x]
            raise Refused(f"{words[0]}: " + (lines or done.stderr.splitlines() or ["no message"])[0])
        return done.stdout


def equal(name, ours, theirs):
    """theirs: what the usual package for this kind of file reads."""
    if isinstance(ours, float) or isinstance(theirs, float):
        if math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12):
            return
    elif ours == theirs:
        return
    raise Wrong(f"{name}: dptrain {ours!r}, expected {theirs!r}")
