#!/usr/bin/env python3
"""Types what new users typed, with files such as they had, and looks at what they then read.

usage: typed_lines.py --dptrain PROGRAM [--verbose] [NAME...]

Each case is a line of bash that runs in a folder with configs/ and small stand-ins for Fashion-MNIST (sandbox.py), its
exit code, and texts that its output must have; texts that begin with `!` must not be there. A case is skipped if a
program or Python module that it needs is missing. NAME: only cases that begin with it, such as B or A12.
"""
import argparse, importlib.util, os, pathlib, shutil, subprocess, sys, tempfile
from sandbox import sandbox

SPEC = "configs/fmnist_single.yaml"
# Shell functions: rows 'EXPRESSION of i' [COUNT] prints lines; images makes a folder of two classes of images.
HELPERS = r"""
rows() { python3 -c '
import sys
colors, animals, line = ["red", "blue"], ["cat", "dog"], "one\ntwo"
quote = chr(34)
for i in range(60): print(eval("f\"\"\"" + sys.argv[1] + "\"\"\""))' "$1"; }
table() { { echo "$1"; rows "$2"; } > t.csv; }
init() { dptrain init t.csv "$@" -o t.yaml && dptrain check t.yaml && cat t.yaml; }
small() { dptrain "$1" epochs=1 data.limit=200 "${@:2}"; }
images() { python3 -c '
import os
for k in range(2):
    os.makedirs(f"photos/{k}")
    for i in range(12):
        open(f"photos/{k}/{i}.ppm", "wb").write(b"P6 16 12 255\n" + bytes([200 * k, 9 * i, 50]) * 192)'; }
"""
CASES = [
    # Sweeps, DP against DDP.
    ("A1 sweep", "dptrain sweep configs/fmnist_ddp.yaml parallel=single,dp,ddp data.batch_size=64,256,1024 epochs=1", 0,
     "9 runs, 9 to train", "single          1024 ", "!uses one device"),
    ("A1 single", "dptrain configs/fmnist_ddp.yaml parallel=single epochs=1", 0, "Training on CPU 0 finished."),
    ("A2", f"small {SPEC}", 0, "single uses 2 cores; to compare it with dp or ddp, give each device one core: cores=1"),
    ("A3", "mpirun -n 2 dptrain configs/fmnist_ddp.yaml epochs=1 name=scal; dptrain runs runs/scal --csv; "
     "grep devices: runs/scal/1/spec.resolved.yaml", 0, "run,ranks,workers,hosts,", "\n1,2,2,1,", "devices: 2"),
    ("A4", f"small {SPEC} --numbers loss 2>/dev/null | wc -l", 0, "1"),
    ("A5", f"dptrain {SPEC} data.batch_size=$B", 2, "'data.batch_size' has no value"),
    ("A5 out", f"dptrain {SPEC} epochs=1 out=", 2, "'out' has no value"),
    ("A6 eval", f"small {SPEC}; dptrain eval fmnist_single --json; dptrain eval fmnist_single --print accuracy", 0,
     '"test.accuracy": 0.1', "\n0.1"),
    *((f"A6 {line.split()[0]}", f"small {SPEC} 2>/dev/null; dptrain {line} --json 2>/dev/null | python3 -m json.tool >/dev/null && echo JSON",
       0, "JSON")
      for line in ("compare fmnist_single fmnist_single", f"data {SPEC}", f"plan {SPEC}", f"check {SPEC}", "doctor")),
    ("A7", f"small {SPEC} evaluate=true --json 2>/dev/null; cat runs/fmnist_single/1/metrics.jsonl; dptrain runs "
     "fmnist_single --csv", 0, '"test.accuracy": ', ",test.accuracy,", "!test_accuracy", "!last_accuracy"),
    ("A7 names", f"small {SPEC} data.validation=0.1 early_stop.metric=val_loss early_stop.patience=2", 2,
     "such as top5", "did you mean 'validation.loss'?"),
    ("A8", f"timeout -s INT 8 dptrain bench {SPEC} --rounds 40 --seconds 2; ls runs/fmnist_single/1", 0, "bench.csv"),
    ("A9", f"COLUMNS=80 dptrain bench {SPEC} --rounds 1 2>/dev/null | awk 'length > 80'; ls runs/fmnist_single/1", 0,
     "report.html", "!samples"),
    ("A10", "dptrain configs/fmnist_ddp.yaml epochs=1 devices=20 data.limit=400", 0, f"CPUs: {len(os.sched_getaffinity(0))}\n",
     "share"),
    ("A11", "dptrain check configs/fmnist_*.yaml", 0, "fmnist_dp.yaml: ok", "fmnist_single.yaml: ok"),
    ("A12", f"small {SPEC}; dptrain compare fmnist_single fmnist_single; dptrain runs fmnist_single", 0, "the same\n",
     "samples/s"),
    ("A14", "for c in train sweep bench predict eval init export plan; do COLUMNS=80 dptrain $c --help; done | "
     "awk 'length > 80' | wc -l", 0, "0\n"),
    ("A15", f"small {SPEC} 2>&1 >/dev/null | grep -ci 'loss'; small {SPEC} --quiet 2>&1 | wc -l", 0, "0\n", "\n2\n"),
    ("A16", f"dptrain {SPEC} --epochs 3", 2, "epochs=3"),
    ("A17", f"dptrain sweep {SPEC} data.batch_size=32..256", 2, "225 runs; add --yes"),
    ("A18", f"dptrain {SPEC} epochs=1 'data.dataset={{synthetic_images: {{samples: 200, shape: [1, 28, 28]}}}}'; "
     f"dptrain eval {SPEC}", 0, "data.dataset"),
    ("A19", f"timeout -s INT 6 dptrain sweep {SPEC} data.batch_size=1,2 epochs=10000 --jobs 1; dptrain runs "
     "sweeps/fmnist_single/1 | tail -1", 0, "batch_size=1 ", "stopped\n"),
    # Tables.
    ("B1", "table a,b,a '{i},{i*i%7},{i%2}'; init", 0, "column 'a.1', 2 classes"),
    ("B2", "table ms,y '{1700000000000+i*1000},{i%2}'; init; small t.yaml 2>/dev/null; dptrain data t.yaml", 0, "Epoch [1/1]"),
    ("B3", "table x,y '{1e6+i*1e-3:.4f},{i*0.5}'; init", 0, "standardize"),
    ("B4", "table x,y '{i},{1234500.0+i}'; init; small t.yaml; dptrain predict t t.csv -o p.csv; cat p.csv", 0, "!e+06"),
    ("B5", "{ echo x,y; rows '{i},{i%2}'; echo 5,NA; } > t.csv; init; dptrain t.yaml", 2, "t.csv:62:3: ", "'NA'",
     "--missing-targets drop"),
    ("B6", "{ echo 0,1,2,target; rows '{i*.5},{i*i%7*.1},{i%3*.5},{i%2}'; } > t.csv; init", 0, "header"),
    ("B7", "{ echo 'a;b;y'; rows '{i},5;{i*3%7},25;{i%2}'; } > t.csv; init", 0, 'decimal: ","'),
    ("B7 a stray text", "{ echo a,y; rows '{i}.5,{i%2}'; echo oops,1; } > t.csv; init; small t.yaml", 2, "oops", "line 62"),
    ("B8", "{ echo a,y; rows '{i}.5,{i%2}'; echo 1,0.0; echo 2,1.0; } > t.csv; init", 0, "classes: 2"),
    ("B9", "table a,y '{i}.5,{i%2}'; tr '\\n' '\\r' < t.csv > r.csv; mv r.csv t.csv; init; dptrain data t.yaml", 0, "60"),
    ("B10", "{ echo a,note,y; rows '{i}.5,{quote}{line} {i%3}{quote},{i%2}'; } > t.csv; init; dptrain data t.yaml", 0, "!separator"),
    ("B11", "{ printf 'gr\\366sse,y\\n'; rows '{i}.5,{i%2}'; } > t.csv; init", 4, "iconv -f WINDOWS-1252"),
    ("B11 UTF-16", "table a,y '{i}.5,{i%2}'; iconv -t UTF-16 t.csv > u.csv; mv u.csv t.csv; init; dptrain data t.yaml", 0, "60"),
    ("B12", "table id,a,when,y '{i},{i*i%17}.5,2024-01-{i%28+1:02},{i%2}'; init", 0, "id"),
    ("B13", "table a,color,y '{i}.5,{colors[i%2]},{i%2}'; init; small t.yaml; printf 'a,color\\n1.5,green\\n' "
     "> n.csv; dptrain predict t n.csv", 0, "green"),
    ("B14", "{ echo a,y; rows '{i}.5,{i%2}'; echo 3.5,7; } > t.csv; init; small t.yaml", 0, "class"),
    ("B15", "table a,b,c,d '{i}.5,{i%2},{i//2%2},{i//3%2}'; init --target b,c,d", 0, "bce_with_logits_loss", "b, c, d"),
    # Images, weights, others.
    ("C1", "images; head -c 99 /dev/urandom > photos/0/x.gif; dptrain init photos -o t.yaml", 0, "1 .gif"),
    ("C3", "images; head -c 99 photos/0/3.ppm > x; mv x photos/0/3.ppm; dptrain init photos -o t.yaml; dptrain t.yaml "
     "epochs=1; dptrain t.yaml epochs=1 data.dataset.image_folder.on_error=skip", 0, "3.ppm", "Epoch [1/1]"),
    ("val/ beside train/ and test/", "images; mkdir d; for s in val test; do cp -r photos d/$s; done; mv photos d/train; dptrain "
     "init d -o t.yaml; cat t.yaml; dptrain t.yaml epochs=1", 0, "  validation:", "path: d/val", "Validation loss", "Test loss: "),
    ("C4", f"small {SPEC} evaluate=true save.best=test.loss; dptrain eval fmnist_single", 0, "best.safetensors (best"),
    ("C5", "table a,color,y '{i}.5,{colors[i%2]},{i%2}'; init; small t.yaml; dptrain export t --to onnx -o "
     "t.onnx; strings t.onnx", 0, "wrote t.onnx", "color"),
    ("C6", "table a,y '{i}.5,{animals[i%2]}'; init; small t.yaml 'evaluate={metrics: [accuracy, confusion_matrix]}'; "
     "cat runs/t/1/confusion_matrix.csv", 0, "cat", "dog"),
    ("C7", "for i in {1..300}; do echo 'a text of some letters'; done > text.txt; dptrain init text.txt -o t.yaml; "
     "sed -i s/12/64/ t.yaml; small t.yaml data.limit=20; dptrain generate t --tokens 20", 0, "Epoch [1/1]"),
    ("C9", "python3 -c 'import struct; "
     'h = b"{\\"descr\\": \\"<f4\\", \\"fortran_order\\": False, \\"shape\\": (4L, 2L), }"; h += b" " * (117 - len(h)) + b"\\n"; '
     'open("x.npy", "wb").write(b"\\x93NUMPY\\1\\0" + struct.pack("<H", len(h)) + h + bytes(32))\'; cp x.npy y.npy; '
     "dptrain init . -o t.yaml; dptrain data t.yaml", 0, "training set: 4 samples, [2] f32"),
    ("C12", f"small {SPEC}; dptrain predict fmnist_single nodir", 4, "nodir", "!unknown file type"),
    ("C13", f"sed 's/^epochs/evaluate: true\\nepochs/; s/  shuffle/  validation: 0.2\\n  shuffle/' {SPEC} > v.yaml; "
     "dptrain export v.yaml --to torch; dptrain export v.yaml --to torch data.validation=none -o v.py", 0,
     "export with data.validation=none", "wrote v.py"),
    ("C14", f"small {SPEC} 'schedule={{cosine_annealing: {{}}}}' epochs=2; dptrain {SPEC} --resume auto data.limit=200 "
     "'schedule={cosine_annealing: {}}' epochs=20", 0, "learning rate"),
    ("C16", "dptrain check configs/gpt_shakespeare.yaml; dptrain configs/gpt_shakespeare.yaml epochs=1", 4, "!../shared"),
]
NEEDS = {"A3": "mpirun", "C5": "strings"}


def missing(name):
    need = NEEDS.get(name.split()[0])
    if need and not shutil.which(need) and not importlib.util.find_spec(need):
        return need


def run(folder, environment, script):
    return subprocess.run(["bash", "-c", HELPERS + script], cwd=folder, env=environment, timeout=120, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    failed = skipped = 0
    for name, script, code, *texts in CASES:
        if given.names and not name.startswith(tuple(given.names)):
            continue
        if need := missing(name):
            print(f"skipped: {name}: {need} is missing")
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            done = run(folder, sandbox(folder, os.path.abspath(given.dptrain)), script)
        wrong = [t for t in texts if (t[1:] in done.stdout if t[0] == "!" else t not in done.stdout)]
        if done.returncode != code:
            wrong.append(f"exit code {done.returncode}, not {code}")
        failed += bool(wrong)
        if wrong or given.verbose:
            print(f"{'wrong' if wrong else 'right'}: {name}: {wrong}\n$ {script}\n{done.stdout}")
    print(f"{len(CASES)} lines, {skipped} skipped, {failed} wrong")
    sys.exit(failed > 0)


main()
