#!/usr/bin/env python3
"""Compares what dptrain reads from the data files of installed Python packages with what pandas reads.

    tools/real_files.py --dptrain build/src/dptrain [PATH ...]

PATH: files or folders, by default the folders of scikit-learn, statsmodels, vega_datasets and others that are
installed. Each file goes through init, check, one epoch and predict. A difference is an error, and a refusal is
printed with its reason. To add a kind of file, write a function (Tool, path) -> Result and add it to KINDS.
"""
import argparse
import importlib.util
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

PACKAGES = ["sklearn", "statsmodels", "vega_datasets", "seaborn", "skimage"]


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
    if isinstance(ours, float) or isinstance(theirs, float):
        if math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12):
            return
    elif ours == theirs:
        return
    raise Wrong(f"{name}: dptrain {ours!r}, pandas {theirs!r}")


def read_with_pandas(path, settings, columns):
    import pandas
    delimiter = {"tab": "\t"}.get(settings.get("delimiter"), settings.get("delimiter", ","))
    how = {"sep": delimiter, "decimal": settings.get("decimal", "."), "na_values": ["?"], "index_col": False,
           "header": 0 if columns["header"] else None, "low_memory": False,
           "encoding": "utf-16" if path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"}
    frame = pandas.read_csv(path, **how)
    if truths := list(frame.select_dtypes(bool)):  # texts for dptrain, in the file's spelling
        frame = pandas.read_csv(path, **how, dtype=dict.fromkeys(truths, str))
    # dptrain keeps the empty name of pandas' index.
    frame.columns = ["" if str(c).startswith("Unnamed: ") else str(c).strip() for c in frame.columns]
    return frame


def compare_columns(frame, columns, settings):
    equal("names", [re.sub(r"^(\.\d+|Unnamed: \d+)$", "", n) for n in columns["names"]], list(frame.columns))
    encodings = columns.get("encodings") or [{} for _ in columns["inputs"]]
    for index, encoding in zip(columns["inputs"], encodings):
        values, name = frame.iloc[:, index], f"column {index} '{columns['names'][index]}'"
        if "categories" in encoding:
            texts = values.dropna().astype(str).str.strip()
            equal(name + " categories", len(encoding["categories"]), texts.nunique())
            continue
        mean = values.astype(float).mean()
        if "fill" in encoding:
            equal(name + " fill", encoding["fill"], mean)
        if settings.get("standardize"):
            std = values.astype(float).fillna(mean).std(ddof=0)
            equal(name + " mean", encoding.get("mean", 0.0), mean)
            equal(name + " std", encoding.get("std", 1.0), std if std > 1e-12 * values.abs().max() else 1.0)


def check_csv(tool, path):
    """The table, its statistics, and predictions for it and for a copy that pandas writes."""
    import yaml
    tool.run("init", path, "--out", "spec.yaml", "--force")
    spec = yaml.safe_load((tool.folder / "spec.yaml").read_text())
    settings = spec["data"]["dataset"]["csv"]
    tool.run("check", "spec.yaml")
    # All samples are trained on, so that the statistics are those of the file.
    run = ["spec.yaml", "epochs=1", "cores=1", "out=run"]
    tool.run(*run, *(["data.validation=none", "evaluate=false"] if "validation" in spec["data"] else []))
    form = json.loads(next((tool.folder / "run").rglob("data.json")).read_text())
    columns = form["columns"]
    frame = read_with_pandas(path, settings, columns)
    if settings.get("missing") == "drop":
        frame = frame.dropna(subset=frame.columns[columns["inputs"] + columns["targets"]])
    compare_columns(frame, columns, settings)
    if form.get("class_names"):
        target = frame.iloc[:, columns["targets"][0]]
        equal("classes", len(form["class_names"]), target.nunique())
    run_folder = next((tool.folder / "run").rglob("data.json")).parent
    ours = tool.run("predict", run_folder, path, "--csv").splitlines()
    equal("samples", len(ours) - 1, len(frame))
    frame.to_csv(tool.folder / "copy.csv", index=False, header=columns["header"])
    if not settings.get("delimiter") and not settings.get("decimal"):
        theirs = tool.run("predict", run_folder, "copy.csv", "--csv").splitlines()
        for row, (a, b) in enumerate(zip(ours, theirs)):
            equal(f"prediction {row}", a.split(",", 1)[1], b.split(",", 1)[1])
    return Result("same", f"{len(frame)} x {len(columns['inputs'])}")


KINDS = {".csv": check_csv, ".tsv": check_csv}


def files_of(paths):
    for path in paths or [pathlib.Path(importlib.util.find_spec(p).origin).parent for p in PACKAGES
                          if importlib.util.find_spec(p)]:
        path = pathlib.Path(path).resolve()
        yield from sorted(f for f in path.rglob("*") if f.suffix in KINDS) if path.is_dir() else [path]


def check(program, path):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return KINDS[path.suffix](Tool(program, pathlib.Path(folder)), path)
        except Refused as e:
            return Result("refused", str(e))
        except Wrong as e:
            return Result("WRONG", str(e))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    missing = [m for m in ("pandas", "yaml") if not importlib.util.find_spec(m)]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed")
        return 0
    counts = {}
    for path in files_of(arguments.paths):
        result = check(str(pathlib.Path(arguments.dptrain).resolve()), path)
        counts[result.verdict] = counts.get(result.verdict, 0) + 1
        print(f"{result.verdict:8} {path.name}: {result.text}", flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    return 1 if counts.get("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())
