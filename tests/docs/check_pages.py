#!/usr/bin/env python3
"""Checks README.md and docs/: lines of prose have at most 100 columns, links lead somewhere, named files exist.

usage: check_pages.py [ROOT]

Tables, code blocks and lines without a space may be longer. `optim/schedule.h` in code quotes is a file of src/, of the
repository, of tests/ or beside the page; names with capitals, such as FILE.csv, and names in runs/ are examples.
"""
import pathlib, re, sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "datasets/README.md"])
SOURCES = r"\.(h|cpp|cu|cuh|py|sh|md|yaml|build|json)$"


def prose(text):
    """(number, line) outside of code blocks."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page):
    seen, out = {}, set()
    for _, line in prose(page.read_text()):
        if m := re.match(r"#+ (.*)", line):
            name = anchor(m[1])
            out.add(f"{name}-{seen[name]}" if name in seen else name)
            seen[name] = seen.get(name, 0) + 1
    return out


def is_file(name, page):
    if any((base / name).exists() for base in (ROOT / "src", ROOT, ROOT / "tests", page.parent)):
        return True
    return any(p.name == name.split("/")[-1] and str(p).endswith("/" + name) for p in FILES)


FILES = [p for folder in ("src", "tests", "tools", "configs", "docs", "datasets") for p in (ROOT / folder).rglob("*")]
# Files of users in examples, or of other projects.
EXAMPLES = {"my.yaml", "points.py", "net.py", "points.yaml", "shapes.yaml", "base.yaml", "state.json", "env.json",
            "data.json", "bench.json", "report.md", "spec.resolved.yaml", "use_weights.py", "shapes.py", "cudnn_frontend.h",
            "train.py", "dptrain.schema.json"}


def main():
    bad = []
    for page in PAGES:
        name = page.relative_to(ROOT)
        generated = "The program writes this page" in page.read_text()
        for number, line in prose(page.read_text()):
            where = f"{name}:{number}"
            if len(line) > 100 and not line.startswith("|") and " " in line.strip() and not generated:
                bad.append(f"{where}: {len(line)} columns")
            for link in re.findall(r"\]\(([^)\s]+)\)", line):
                path, _, part = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                if re.match(r"https?:", link):
                    continue
                if not target.exists():
                    bad.append(f"{where}: there is no {path}")
                elif part and target.suffix == ".md" and part not in anchors(target):
                    bad.append(f"{where}: {target.name} has no heading #{part}")
            for span in re.findall(r"`([\w./+-]+)`", line):
                if re.search(SOURCES, span) and span not in EXAMPLES and not re.search(r"[A-Z]|^runs/|^share/|^/", span.replace("README", "")):
                    if not is_file(span, page):
                        bad.append(f"{where}: there is no file {span}")
    print(*bad, f"{len(PAGES)} pages, {len(bad)} failures", sep="\n")
    sys.exit(bool(bad))


main()
