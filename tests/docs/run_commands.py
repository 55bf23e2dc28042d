#!/usr/bin/env python3
"""Runs the commands of README.md and of all pages below docs/ in empty folders, and compares what they print.

usage: run_commands.py --dptrain PROGRAM [--list] [--verbose] [PAGE...]

Commands are the ```sh blocks, the lines that begin with `$ ` in blocks without a language, and inline code that begins
with a program of PROGRAMS and has arguments but no placeholder, such as SPEC or `...`. A plain block directly behind an
```sh block is its output. Every ```yaml block must be a sound spec: it may lack keys, which are then those of my.yaml,
unless it has data and a model. Outputs are compared line by line, in order: numbers may differ, and lines may come
between. Losses and accuracies must agree to 0.03 and 3 % unless they depend on downloaded data.

NOT_RUN lists the commands that no test runs. All others are run here, or by the test that a comment names. Comments
change what is done with the next block, or with the inline code of the next paragraph:

    <!-- test: run by FILE, ... -->        one of these tests runs it, if it names the page or the command's program
    <!-- test: needs NAME, ... -->         it is skipped if one of these programs or Python modules is missing
    <!-- test: output differs, REASON -->  it is run, and its output is not compared
    <!-- test: with A for B -->            it is run with A in the place of B, to be faster
    <!-- test: before COMMANDS -->         COMMANDS are run first; readers do not see them
    <!-- test: after PAGE -->              the whole page is run in the folder of PAGE, after it

Each page has a folder of its own (sandbox.py). Tests have no network, so tools/fetch_data.sh does nothing, and small
stand-ins have the format of Fashion-MNIST. With DPT_DOCS_FULL=1 commands use the data in DPTRAIN_DATA, and all numbers
are compared. $DPTRAIN_PYTHON may name a Python that has torch.
"""
import argparse, functools, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, threading, time
from sandbox import FULL, ROOT, protect_machine, sandbox

PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
# Reason: pattern of "PAGE: LINE". At most five kinds of commands; a pattern that matches no line fails the test.
NOT_RUN = {
    "needs a GPU": r"docs/gpu\.md: (?!dptrain (doctor|plan))",
    "needs SLURM or several machines": r": (sbatch|srun) |\bhosta\b",
    "needs docker, or root's package manager": r": (docker|sudo apt-get) ",
    "takes ten minutes to hours": r"build-dev|tools/(mutation/mutate|bench/compare|faults/run)\.py|\$[BD]\b|: D="
                                  r"|tools/(fuzz\.sh |test\.sh --(all|tsan))",
}
PROGRAMS = r"(?:[A-Z_]+=\S+ )*(?:dptrain|meson|ninja|docker|python3|tools/\S+|build/\S+)"
PLACEHOLDER = r"(?<![-\w])[A-Z][A-Z_]*\b(?!=)|\.\.\."
ALONE = ("dptrain schema", "dptrain doctor", "dptrain manual")  # without an argument, others are only mentioned
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[-+]\d+)?")


class Command:
    """Shell text, where it stands, what it should print (None: not compared), and what comments say about it."""

    def __init__(self, where, text, expected, notes):
        self.where, self.text, self.expected, self.notes = where, text, expected, notes
        self.page, self.title = where.split(":")[0], f"{where}: {text.splitlines()[0]}"

    def values(self, kind):
        return [note[len(kind):].strip(" ,") for note in self.notes if note.startswith(kind)]


def is_command(code):
    return (re.match(PROGRAMS + " ", code) and not re.search(PLACEHOLDER, code)
            and (code in ALONE or not re.fullmatch("(dptrain|meson) [a-z][a-z-]*", code)))


def blocks(page):
    """(line number, kind, text, notes): kind is a block's language, "" for none, "inline", "text" or "before"."""
    notes, out, lines, i = [], [], (ROOT / page).read_text().split("\n"), 0
    while i < len(lines):
        note = re.fullmatch(r"<!-- test: ((run by|needs|output differs,|with|before|after) .*) -->", lines[i])
        if note and note[2] == "before":
            out.append((i + 1, "before", note[1][len("before "):], []))
        elif note:
            notes += [n for n in note[1].split("; ") if note[2] != "after"]
        elif lines[i].startswith("<!-- test:"):
            sys.exit(f"{page}:{i + 1}: unknown comment: {lines[i]}")
        elif lines[i].startswith("```"):
            end = lines.index("```", i + 1)
            out.append((i + 1, lines[i][3:], "\n".join(lines[i + 1:end]), notes))
            i, notes = end, []
        elif lines[i].strip():  # a paragraph; inline code may go over the end of a line
            end = next(k for k in range(i, len(lines)) if re.match(r"\s*$|```|<!-- test", lines[k]))
            paragraph = "\n".join(lines[i:end])
            out.append((i + 1, "text", "", []))
            for code in re.finditer(r"``.*?``|`([^`]+)`", paragraph):
                if is_command(text := re.sub(r"\s*\n\s*", " ", code[1] or "")):
                    out.append((i + 1 + paragraph.count("\n", 0, code.start()), "inline", text, notes))
            i, notes = end - 1, []
        i += 1
    return out


def commands(page):
    out, before = [], None  # before: the sh block whose output may come next
    for line, kind, text, notes in blocks(page):
        where = f"{page}:{line}"
        if kind == "text":
            before = None
        elif kind in ("sh", "inline", "before"):
            out.append(Command(where, text, None, notes))
            before = out[-1] if kind == "sh" else None
        elif kind == "yaml" and (page != "docs/spec-reference.md" or "\nmodel:" in text):  # a unit test reads the rest
            rest = "" if re.search("^extends:|^data:(.|\n)*^model:", text, re.M) else "extends: my.yaml\n"
            check = f"cat > spec.yaml <<'END'\n{rest}{text}\nEND\ndptrain check --no-data spec.yaml"
            out.append(Command(where, check, None, notes))
        elif kind == "" and text.startswith("$ "):
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                first, rest = re.fullmatch(r"((?:.*\\\n)*.*)\n?((?:.|\n)*)", part).groups()
                out.append(Command(where, first, rest.split("\n") if rest.strip() else None, notes))
        elif kind == "" and before:
            before.expected, before = text.split("\n"), None
    return out


def plain(text, exact=False):
    """A line without its numbers, bars and hashes. `exact`: but [3/10] stays, so that epochs are told apart."""
    varies = r"\[\d+/\d+\]|\b[0-9a-f]{64}\b|[\u2580-\u259f]+|" + NUMBER.pattern
    return re.sub(varies, lambda m: m[0] if exact and m[0][0] == "[" else "#", text)


def numbers_of(words):
    return [float(m.group(0).replace(",", "")) for m in NUMBER.finditer(" ".join(words))]


def close(expected, found):
    """Losses and accuracies: the first digits. What else a line holds (times, addresses) may be anything."""
    if not re.match(r"Epoch \[|Test loss:", " ".join(expected)):
        return True
    a, b = numbers_of(expected), numbers_of(found)
    return len(a) == len(b) and all(abs(x - y) <= max(0.03, 0.03 * abs(x)) for x, y in zip(a, b))


def difference(command, output, exact):
    """What is wrong with an output, or nothing. `exact`: losses are compared, too. Lines may be broken elsewhere, and
    anything may stand in the place of `...`."""
    raw = output.split()
    words, at = [plain(w, exact) for w in raw], 0
    for line in command.expected or []:
        for part in re.split(r"(?<!\S)(?:\.\.\.|\^C)(?!\S)", line):
            wanted = part.split()
            form = [plain(w, exact) for w in wanted]
            while at <= len(words) - len(form) and words[at:at + len(form)] != form:
                at += 1
            if at > len(words) - len(form):
                return f"missing line: {line}"
            if exact and not close(wanted, raw[at:at + len(form)]):
                return f"expected: {line}\n   found: {' '.join(raw[at:at + len(form)])}"
            at += len(form)
    return None


def run(command, text, folder, environment, exact):
    """(exit status, what it printed). Where ^C stands in the output, it is interrupted after the line before it."""
    process = subprocess.Popen(["bash", "-e", "-c", text], cwd=folder, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    before = command.expected[:command.expected.index("^C")] if "^C" in (command.expected or []) else []
    last = plain(before[-1], exact).strip() if before else ""
    to_come = sum(plain(line, exact).strip() == last for line in before)
    output, timer = [], threading.Timer(120, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    for line in process.stdout:
        output.append(line.rstrip("\n"))
        if to_come and plain(line, exact).strip().startswith(last):  # an epoch's times may follow
            to_come -= 1
            if not to_come:
                os.killpg(process.pid, signal.SIGINT)
    status = process.wait()
    timer.cancel()
    return status, "\n".join(output)


def allowed(command, status):
    text = "\n".join(command.expected or [])
    return status == (130 if "^C" in text else 2 if "error:" in text else 0)


@functools.cache
def missing(name, folder):
    """Whether this is neither a program of the PATH, nor one in the folder, nor a Python module."""
    probe = ["python3", "-c", f"import {name}"]
    return not (shutil.which(name) or (folder / name).exists() or
                subprocess.run(probe, capture_output=True).returncode == 0)


def elsewhere(command, text, bad):
    """Whether a test that a comment names runs it: that test names its program or, in this folder, its page. Too many
    files name dptrain for that to say anything."""
    program = re.sub(r"^(\s*\w+=\S+ )*", "", text).split()[0]
    for file in (name for value in command.values("run by") for name in value.split(", ")):
        named = [program] * (program != "dptrain") + [command.page] * file.startswith("tests/docs/")
        if not (ROOT / file).exists():
            bad.append(f"{command.where}: there is no {file}")
        elif named and re.search(rf"(?<![\w-])({'|'.join(map(re.escape, named))})(?![\w-])", (ROOT / file).read_text()):
            return True
    return False


def to_run(command, used):
    """The command as comments change it, without the lines that NOT_RUN lists: their reasons are added to `used`."""
    text = ""
    for line in re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n?", command.text):
        reason = next((r for r, pattern in NOT_RUN.items() if re.search(pattern, f"{command.page}: {line}")), None)
        if reason and line.strip():
            print(f"not run: {command.where}: it {reason}: {line.strip()}")
            used.add(reason)
        else:
            text += line
    for new, old in (value.split(" for ", 1) for value in command.values("with")):
        assert old in text, f"{command.where}: there is no {old}"
        text = text.replace(old, new)
    return text


def failure(command, text, folder, environment, verbose):
    """Runs a command. Returns what is wrong, or nothing."""
    start, exact = time.monotonic(), FULL or "fmnist" not in command.text
    status, output = run(command, text, folder, environment, exact)
    print(f"{time.monotonic() - start:6.1f} s  {command.title}", flush=True)
    if verbose:
        print(output)
    wrong = None if allowed(command, status) else f"exit code {status}"
    if not wrong and not command.values("output differs"):
        wrong = difference(command, output, exact)
    return f"{command.where}: {text}\n{wrong}\n{output}" if wrong else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--list", action="store_true", help="print the commands, run nothing")
    parser.add_argument("--verbose", action="store_true", help="print what the commands print")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="run these pages only")
    a = parser.parse_args()
    if a.list:
        for c in (command for page in a.pages or PAGES for command in commands(page)):
            print(c.where, c.notes, c.text, *(c.expected or []), sep="\n    ")
        return
    if python := os.environ.get("DPTRAIN_PYTHON"):
        os.environ["PATH"] = f"{os.path.dirname(python)}:{os.environ['PATH']}"
    folders = {}  # {page: it and the pages that are run in its folder after it}
    for page in a.pages or PAGES:
        after = re.search(r"^<!-- test: after (.*) -->$", (ROOT / page).read_text(), re.M)
        group = folders.setdefault(after[1] if after else page, [after[1] if after else page])
        group += [page] if after else []
    used, counts, bad = set(), {"run": 0, "run elsewhere": 0, "skipped": 0}, []
    for pages in folders.values():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = sandbox(folder, os.path.abspath(a.dptrain))
            protect_machine(folder)
            for c in (command for page in pages for command in commands(page)):
                lacks = [name for value in c.values("needs") for name in value.split(", ") if missing(name, folder)]
                text = to_run(c, used)
                if not re.search(r"^\s*[^#\s]", text, re.M):
                    continue
                if lacks or elsewhere(c, text, bad):
                    counts["skipped" if lacks else "run elsewhere"] += 1
                    print(f"skipped, {lacks[0]} is missing: {c.title}" if lacks else f"run elsewhere: {c.title}")
                    continue
                counts["run"] += 1
                bad += filter(None, [failure(c, text, folder, environment, a.verbose)])
    if not a.pages:
        bad += [f"NOT_RUN: no command {reason}" for reason in NOT_RUN if reason not in used]
    print(*bad, ", ".join(f"{n} {what}" for what, n in counts.items()) + f", {len(bad)} failures", sep="\n")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
