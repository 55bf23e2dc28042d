"""CSV files of tools/real_files.py, compared with pandas."""
import json
import re

from real_tool import Result, equal

NEEDS = ["pandas", "yaml"]


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
    without = ["data.validation=none", "evaluate=false", "early_stop=none"] if "validation" in spec["data"] else []
    tool.run("spec.yaml", "epochs=1", "cores=1", "out=run", *without)
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
