#!/usr/bin/env python3
"""Runs the commands of README.md, docs/tutorial.md and docs/mistakes.md in an empty folder and compares what they print.

usage: run_commands.py --dptrain PROGRAM [--list] [--verbose]

Commands are the ```sh blocks, the lines that begin with `$ ` in blocks without a language, and inline code such as
`dptrain explain adam` without placeholders in capitals. A plain block directly behind an ```sh block is its output.
Every ```yaml block with a model must be a sound spec. Outputs are compared line by line, in order: numbers may differ,
and lines may come between. Losses and accuracies must agree to 0.03 and 3 % unless they depend on downloaded data.

The folder has configs/ and tools/ of the repository, and small stand-ins in the format of Fashion-MNIST: tests have no
network, so tools/fetch_data.sh does nothing. With DPT_DOCS_FULL=1 commands use the data in DPTRAIN_DATA, and all numbers
are compared. Comments in the pages change what is done with the next block, or with the inline code of the next paragraph:

    <!-- test: skip, REASON -->            it is not run, and the reason is printed
    <!-- test: needs torch -->             it is skipped if python3 has no torch and no safetensors
    <!-- test: output differs, REASON -->  it is run, and its output is not compared
    <!-- test: with A for B -->            it is run with A in the place of B, to be faster
"""
import argparse, gzip, os, pathlib, random, re, shutil, signal, struct, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/tutorial.md", "docs/mistakes.md"]
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[-+]\d+)?")
ALONE = ("dptrain schema", "dptrain doctor")  # commands that need no argument; others are only mentioned
FULL = os.environ.get("DPT_DOCS_FULL") == "1"


class Command:
    """Shell text, where it stands, what it should print (None: not compared), and what comments say about it."""

    def __init__(self, where, text, expected, notes):
        self.where, self.text, self.expected, self.notes = where, text, expected, notes


def blocks(page):
    """(line number, kind, text, notes): kind is a block's language, "" for none, or "inline"."""
    notes, out, lines, i, paragraph = [], [], (ROOT / page).read_text().split("\n"), 0, False
    while i < len(lines):
        note = re.fullmatch(r"<!-- test: (.*) -->", lines[i])
        if note:
            notes.append(note.group(1))
        elif lines[i].startswith("```"):
            end = lines.index("```", i + 1)
            out.append((i + 1, lines[i][3:], "\n".join(lines[i + 1:end]), notes))
            i, notes = end, []
        else:
            for span in re.findall(r"`((?:dptrain|tools/|python3) [^`]+)`", lines[i]):
                if not re.search(r"\b[A-Z][A-Z_]+\b|=N$", span) and (" " in span[8:] or span in ALONE):
                    out.append((i + 1, "inline", span, notes))
            if lines[i].strip():
                out.append((i + 1, "text", "", []))
            elif paragraph:
                notes = []  # they were the paragraph's
            paragraph = bool(lines[i].strip())
        i += 1
    return out


def commands(page):
    out, before = [], None  # before: the sh block whose output may come next
    for line, kind, text, notes in blocks(page):
        where = f"{page}:{line}"
        if kind == "text":
            before = None
        elif kind in ("sh", "inline"):
            out.append(Command(where, text, None, notes))
            before = out[-1] if kind == "sh" else None
        elif kind == "yaml" and re.search(r"^model:", text, re.M):
            out.append(Command(where, f"cat > spec.yaml <<'END'\n{text}\nEND\ndptrain check --no-data spec.yaml", None, notes))
        elif kind == "" and text.startswith("$ "):
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                first, _, rest = part.partition("\n")
                out.append(Command(where, first, rest.split("\n") if rest.strip() else None, notes))
        elif kind == "" and before:
            before.expected, before = text.split("\n"), None
    return out


def idx(path, shape, data):
    with gzip.open(path, "wb", compresslevel=1) as f:
        f.write(struct.pack(">HBB", 0, 8, len(shape)) + b"".join(struct.pack(">I", n) for n in shape) + data)


def write_stand_ins(folder):
    """3,000 training and 500 test images in the four files of Fashion-MNIST: class k has bright rows from 2 k on."""
    numbers = random.Random(1)
    images = [bytes(220 if 2 * k <= row < 2 * k + 4 else 30 for row in range(28) for _ in range(28)) for k in range(10)]
    folder.mkdir(parents=True)
    for name, count in ("train", 3000), ("t10k", 500):
        labels = bytes(numbers.randrange(10) for _ in range(count))
        idx(folder / f"{name}-images-idx3-ubyte.gz", (count, 28, 28), b"".join(images[k] for k in labels))
        idx(folder / f"{name}-labels-idx1-ubyte.gz", (count,), labels)


def plain(text, exact=False):
    """The form of a line, without its numbers. `exact`: but [3/10] stays, so that epochs are told apart."""
    return re.sub(r"\[\d+/\d+\]|" + NUMBER.pattern, lambda m: m[0] if exact and m[0][0] == "[" else "#", text)


def numbers_of(words):
    return [float(m.group(0).replace(",", "")) for m in NUMBER.finditer(" ".join(words))]


def close(expected, found):
    """Losses and accuracies: the first digits. What else a line holds (times, addresses) may be anything."""
    if not re.match(r"Epoch \[|Test loss:", " ".join(expected)):
        return True
    a, b = numbers_of(expected), numbers_of(found)
    return len(a) == len(b) and all(abs(x - y) <= max(0.03, 0.03 * abs(x)) for x, y in zip(a, b))


def difference(command, output, exact):
    """What is wrong with an output, or nothing. `exact`: losses are compared, too. Lines may be broken elsewhere."""
    raw = output.split()
    words, at = [plain(w, exact) for w in raw], 0
    for line in command.expected or []:
        wanted = line.split()
        if line.strip() in ("", "...", "^C"):
            continue
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
    """(exit status, what it printed). Where ^C stands in the output, it is interrupted once the line before it has come."""
    process = subprocess.Popen(["bash", "-e", "-c", text], cwd=folder, env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    before = command.expected[:command.expected.index("^C")] if "^C" in (command.expected or []) else []
    last = plain(before[-1], exact).strip() if before else ""
    to_come = sum(plain(line, exact).strip() == last for line in before)
    output, timer = [], threading.Timer(120, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    for line in process.stdout:
        output.append(line.rstrip("\n"))
        if to_come and plain(line, exact).strip() == last:
            to_come -= 1
            if not to_come:
                os.killpg(process.pid, signal.SIGINT)
    status = process.wait()
    timer.cancel()
    return status, "\n".join(output)


def allowed(command, status):
    text = "\n".join(command.expected or [])
    return status == (130 if "^C" in text else 2 if "error:" in text else 0)


def has_torch():
    return subprocess.run(["python3", "-c", "import torch, safetensors"], capture_output=True).returncode == 0


def sandbox(folder, dptrain):
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "docs/mistakes", folder / "docs/mistakes")
    if (ROOT / "schema").is_dir():
        shutil.copytree(ROOT / "schema", folder / "schema")
    (folder / "tools").mkdir()
    for tool in (ROOT / "tools").glob("*.sh"):
        shutil.copy(tool, folder / "tools")
    (folder / "tools/fetch_data.sh").write_text("#!/bin/sh\necho 'nothing is downloaded in this test'\n")
    (folder / "bin").mkdir()
    (folder / "bin/dptrain").symlink_to(dptrain)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PMI", "OMPI", "RANK", "WORLD_SIZE"))}
    environment["PATH"] = f"{folder}/bin:{environment['PATH']}"
    if not FULL:
        write_stand_ins(folder / "data/fashion-mnist")
        environment["DPTRAIN_DATA"] = str(folder / "data")
    return environment


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--list", action="store_true", help="print the commands, run nothing")
    parser.add_argument("--verbose", action="store_true", help="print what the commands print")
    a = parser.parse_args()
    dptrain, torch = os.path.abspath(a.dptrain), has_torch()
    ran, skipped, bad = 0, 0, []
    for page in PAGES:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "dptrain"
            folder.mkdir()
            environment = sandbox(folder, dptrain)
            for c in commands(page):
                note = "; ".join(c.notes)
                if a.list:
                    print(c.where, c.notes, c.text, *(c.expected or []), sep="\n    ")
                    continue
                if note.startswith("skip, ") or (note == "needs torch" and not torch):
                    print(f"skipped: {c.where}: {note}: {c.text.splitlines()[0]}")
                    skipped += 1
                    continue
                text = c.text
                for new, old in re.findall(r"with (.*?) for (.*?)(?:;|$)", note):
                    assert old in text, f"{c.where}: there is no {old}"
                    text = text.replace(old, new)
                start, exact = time.monotonic(), FULL or "fmnist" not in c.text
                status, output = run(c, text, folder, environment, exact)
                ran += 1
                print(f"{time.monotonic() - start:6.1f} s  {c.where}: {c.text.splitlines()[0]}", flush=True)
                if a.verbose:
                    print(output)
                wrong = None if allowed(c, status) else f"exit code {status}"
                if not wrong and "output differs" not in note:
                    wrong = difference(c, output, exact)
                if wrong:
                    bad.append(f"{c.where}: {c.text}\n{wrong}\n{output}")
    print(*bad, f"{ran} commands run, {skipped} skipped, {len(bad)} failures", sep="\n")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
