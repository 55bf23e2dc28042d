"""What probe.sh finds, as report.md, logs.txt and archives in the folder that the user gets."""
import tarfile
import threading
import time

REPORT_BYTES = 9000
FILE_BYTES = 15_000_000


class Result:
    def __init__(self, state, seconds=0.0, why="", tail=(), found=()):
        self.state, self.seconds, self.why = state, seconds, why  # passed, failed, left out, skipped
        self.tail, self.found = list(tail), list(found)


class Report:
    """report.md and logs.txt in the folder that the user gets."""

    def __init__(self, out, title, tiny):
        self.out, self.head, self.results, self.note = out, [title], {}, []
        self.begin, self.lock, self.done = time.monotonic(), threading.Lock(), False
        if tiny:
            self.head.append("Small sizes: this only shows that everything runs; times are meaningless.")

    def add(self, name, result):
        with self.lock:
            self.results[name] = result
            mark = "x" if result.state == "passed" else " "
            print(f"[{mark}] {name}: {result.state} ({result.seconds:.0f} s) {result.why}", flush=True)
        self.write()

    def count(self, state):
        return sum(r.state == state for r in self.results.values())

    def total(self):
        counts = ", ".join(f"{self.count(state)} {state}" for state in ("passed", "failed", "left out", "skipped"))
        return f"{counts}; {time.monotonic() - self.begin:.0f} s" + ("" if self.done else ", unfinished")

    def text(self, lines, columns):
        """At most so many lines of each probe."""
        out = [*self.head, "", self.total(), *(note[:columns] for note in self.note)]

        def show(title, states, body):
            rows = [(name, r) for name, r in self.results.items() if r.state in states]
            if rows:
                out.extend(["", f"## {title}", ""])
            for name, r in rows:
                out.extend(body(name, r))

        def cut(found):
            more = [f"      [{len(found) - lines} more lines in logs.txt]"] if len(found) > lines else []
            return [f"      {line}"[:columns] for line in found[:lines]] + more

        show("Failed", ("failed",), lambda name, r: [f"- [ ] {name}: {r.why}", *cut(r.found),
                                                     *(f"      | {line}"[:columns] for line in r.tail[-lines:])])
        show("Left out", ("left out", "skipped"), lambda name, r: [f"- {name}: {r.why}"[:columns]])
        found = {name: r for name, r in self.results.items() if r.state == "passed" and r.found}
        show("Found", ("passed",), lambda name, r: [f"- {name}", *cut(r.found)] if name in found else [])
        passed = [name + (f" ({r.seconds:.0f} s)" if r.seconds >= 1 else "") for name, r in self.results.items()
                  if r.state == "passed"]
        return "\n".join([*out, "", "## Passed", "", ", ".join(passed), ""])

    def fitting(self):
        for lines, columns in ((40, 300), (12, 200), (8, 160), (5, 140), (3, 120), (2, 100), (1, 100), (1, 60)):
            text = self.text(lines, columns)
            if len(text.encode()) <= REPORT_BYTES:
                return text
        return text.encode()[:REPORT_BYTES - 40].decode(errors="ignore") + "\n[cut; logs.txt has more]\n"

    def write(self):
        with self.lock:
            new = self.out / "report.md.new"
            new.write_text(self.fitting())
            new.replace(self.out / "report.md")

    def log(self, file, name, how, lines):
        with self.lock, open(self.out / file, "a") as out:
            if out.tell() < FILE_BYTES // 2:
                out.write(f"==== {name}: {how}\n" + "".join(line[:500] + "\n" for line in lines))


def plan_lines(work):
    """The slowest plans and what libraries refused."""
    texts = [file.read_text(errors="replace") for file in (work / "plans").iterdir()]
    plans = [line.split("\t") for text in texts for line in text.splitlines() if line.startswith("plan")]
    plans = [fields for fields in plans if len(fields) > 5]
    if not plans:
        return []

    def milliseconds(fields):
        try:
            return float(fields[5].split()[0])
        except (ValueError, IndexError):
            return 0.0
    out = [f"{len(plans)} plans, {sum(map(milliseconds, plans)) / 1e3:.1f} s of threads; the slowest:"]
    out += [" ".join(fields[2:6]) for fields in sorted(plans, key=milliseconds, reverse=True)[:5]]
    refused = {" ".join(fields[2:4]) for fields in plans if "refused: " in "\t".join(fields)}
    return out + [f"refused: {len(refused)}", *sorted(refused)[:20]]


def clock_line(work):
    """The range of clocks and power that nvidia-smi saw each second."""
    log, seen = work / "logs/dmon", {}
    columns = []
    for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
        fields = line.replace("#", " ").split()
        if line.startswith("#"):
            columns = fields if "pclk" in fields else columns
        elif len(fields) == len(columns):
            for name in ("pclk", "mclk", "pwr", "gtemp"):
                value = dict(zip(columns, fields)).get(name, "-")
                seen.setdefault(name, []).extend([int(value)] if value.isdigit() else [])
    told = [f"{name} {min(values)} to {max(values)}" for name, values in seen.items() if values]
    return ["nvidia-smi dmon: " + ", ".join(told)] if told else []


def pack(file, root, folders, limit=4 * FILE_BYTES):
    """The small files first, at most `limit` bytes of them, and at most FILE_BYTES in the archive."""
    files = [f for folder in folders for f in (root / folder).rglob("*") if f.is_file() and f.suffix != ".safetensors"]
    with tarfile.open(file, "w:gz", compresslevel=6) as archive:
        for path in sorted(files, key=lambda f: f.stat().st_size):
            limit -= path.stat().st_size
            if limit < 0:
                break
            archive.add(path, path.relative_to(root))
    if file.stat().st_size > FILE_BYTES:
        pack(file, root, folders, FILE_BYTES)  # even if nothing can be compressed
