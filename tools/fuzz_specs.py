#!/usr/bin/env python3
"""Writes hostile specs and runs each through `dptrain check`, `plan` and `train`.

Each spec is a small valid one with one to three changes: a key of the schema set to an extreme, empty or null value, a
layer of the schema inserted with extreme arguments, or stages of one layer. A run fails if it is killed by a signal,
prints an error of a library or an assertion, exits with an undocumented code, exceeds the limits of time and memory, or
if training rejects a spec that `check` and `plan` accepted.

  tools/fuzz_specs.py --dptrain build/src/dptrain --count 20000 --seed 1
  tools/fuzz_specs.py --dptrain build/src/dptrain --every-value

Prints each failure with the spec, and ends with the number of specs and failures. The same seed gives the same specs.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
INTEGERS = [0, 1, -1, 2, 3, 4, 7, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**53 + 1, 2**58, 2**61, 2**62, 2**62 + 1,
            2**63 - 1, 2**63, -(2**31), -(2**63), 10**30]
NUMBERS = [0.0, -0.0, 1e-320, 0.5, 1.0, -1.5, 1e38, 1e39, 1e308, math.inf, -math.inf, math.nan]
TEXTS = ["", " ", "a", "null", "~", "true", "0x10", "010", "${x}", "${", "\u001b[2J", "\u0000", "ü" * 40, "a" * 5000, ".", "..",
         "/dev/null", "/dev/zero", "missing", "1e400", "[", "{", "*a", "&a b", "!!int 3"]
# What a library, the language's runtime or an assertion says, never dptrain.
RAW = re.compile(r"std::|bad_alloc|max_size|vector|basic_string|descriptor|terminate called|Assertion|what\(\)|stoi|stol|stod|"
                 r"bad_any|bad_variant|bad optional|map::at|filesystem error|Sanitizer|runtime error|out_of_range|_M_|"
                 r"bug at |\.cpp:\d+|\.h:\d+|invalid argument")
CODES = {0, 2, 3, 4, 5, 7}


def yaml(value):
    """The value in flow style, which YAML 1.2 reads back."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(yaml(v) for v in value) + "]"
    if isinstance(value, float):
        if math.isnan(value):
            return ".nan"
        if math.isinf(value):
            return ".inf" if value > 0 else "-.inf"
    if isinstance(value, str) and value in ("null", "~", "true", "0x10", "010", "1e400", "[", "{", "*a", "&a b", "!!int 3"):
        return value  # as a user would write it, not quoted
    return "" if value is Empty else json.dumps(value)


class Empty:
    """Nothing behind the colon."""


class Specs:
    """Sound specs and their changes; every draw comes from one generator."""

    def __init__(self, schema, seed):
        self.schema, self.random = schema, random.Random(seed)
        self.layers = self.words("layer")

    def words(self, definition):
        """Each name of a definition with the schema of its value, without the keys that may appear next to it."""
        schema = self.schema["definitions"][definition]
        names = [rule["if"]["required"][0] for rule in schema.get("allOf", []) if "required" in rule.get("if", {})]
        return {name: schema["properties"][name] for name in names or schema["properties"]}

    def pick(self, items):
        return self.random.choice(list(items))

    def scalar(self, kind, schema):
        """One value; of the numbers mostly such as the schema allows, since others are refused at once."""
        if kind in ("integer", "number"):
            numbers = INTEGERS if kind == "integer" else NUMBERS + INTEGERS[:8]
            if self.random.random() < 0.5:
                numbers = range(0, 40)
            if self.random.random() < 0.9:
                low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
                numbers = [n for n in numbers if low <= n <= high and n != schema.get("exclusiveMaximum")] or numbers
            return self.pick(numbers)
        if kind == "boolean":
            return self.pick([True, False]) if self.random.random() < 0.95 else self.pick(["yes", 1])
        if kind == "string":
            return self.pick(TEXTS)
        return None

    def value(self, schema, depth=0):
        """A value of about this schema, extreme where it can be."""
        r = self.random.random()
        if r < 0.02:
            return Empty if depth == 0 else None
        if r < 0.04:
            return self.pick([None, [], {}, "", [[]], [None], {"": None}, 0, True])
        if depth > 6:
            return None
        if "else" in schema and "type" not in schema:  # "if" is the exception: an expression, none, null
            schema = schema | schema["else"]
        if "allOf" in schema and "type" not in schema:
            return self.value(self.pick(schema["allOf"]), depth + 1)
        if "items" in schema and "$ref" in schema and r < 0.5:
            return [self.value(schema["items"], depth + 1) for _ in range(self.random.randint(0, 3))]
        if "$ref" in schema:
            return self.value(self.schema["definitions"][schema["$ref"].rsplit("/", 1)[1]], depth + 1)
        if "enum" in schema:
            return self.pick(schema["enum"])
        kind = schema.get("type", "string")
        kind = self.pick(kind) if isinstance(kind, list) else kind
        if kind == "array":
            few = self.random.randint(0, 4) if self.random.random() < 0.95 else 200
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(few)]
        if kind == "object":
            properties = schema.get("properties", {})
            keys = set(schema.get("required", [])) | {k for k in properties if self.random.random() < 2 / (2 + len(properties))}
            return {k: self.value(properties.get(k, {}), depth + 1) for k in sorted(keys) if k != "out"}
        if kind == "string" and self.random.random() < 0.5:
            return "a"
        return self.scalar(kind, schema)

    def images(self):
        shape = self.pick([[1, 8, 8], [3, 5, 7], [4, 1, 1], [2, 12, 3]])
        spec = {"data": {"dataset": {"synthetic_images": {"samples": self.random.randint(4, 20), "shape": shape, "classes": 3}},
                         "transforms": ["to_tensor"]}, "loss": "cross_entropy"}
        layers = [{"conv2d": {"out_channels": 4, "kernel_size": 1}}, "relu", {"batch_norm2d": None}, {"max_pool2d": 1},
                  {"adaptive_avg_pool2d": 2}, {"dropout": 0.5}, {"residual": {"body": ["relu"]}}, "identity",
                  {"adaptive_max_pool2d": 3}, {"dropout2d": 0.5}, {"pad": {"padding": 1, "mode": "replicate"}}, "mish",
                  {"upsample": {"size": 4, "mode": "bilinear"}}, {"permute": [3, 1, 2]}]
        return spec, [self.pick(layers) for _ in range(self.random.randint(0, 4))] + ["flatten", {"linear": 3}]

    def vectors(self):
        spec = {"data": {"dataset": {"random": {"samples": self.random.randint(4, 40), "in_features": 4, "out_features": 2}}},
                "loss": "mse_loss"}
        layers = [{"linear": 8}, "relu", {"dropout": 0.5}, {"layer_norm": None}, {"batch_norm1d": None}, "sigmoid", "identity",
                  "rms_norm", "hardtanh", "glu", {"reshape": [-1]},
                  {"flatten": {"start_dim": -1}}, {"linear": 3, "checkpoint": True}]
        return spec, [self.pick(layers) for _ in range(self.random.randint(0, 5))] + [{"linear": 2}]

    def tokens(self):
        spec = {"data": {"dataset": {"synthetic_tokens": {"samples": 16, "length": 6, "vocabulary": 9, "targets": "next"}}},
                "loss": {"cross_entropy": {"class_dim": -1}}}
        block = {"residual": [{"multihead_attention": {"num_heads": 2, "causal": True}}, {"dropout": 0.1}]}
        return spec, [{"embedding": {"num_embeddings": 9, "embedding_dim": 8}}, "position_embedding"] + [
            self.pick([block, {"layer_norm": None}, "gelu", {"linear": 8}]) for _ in range(self.random.randint(0, 3))] + [{"linear": 9}]

    def mode(self, spec, layers):
        kind = self.pick(["single", "single", "dp", "ddp", "pipeline", "pipeline", "placed"])
        if kind == "pipeline":  # often as many stages as layers: stages of one
            stages = self.pick([1, 2, 3, max(1, len(layers)), max(1, len(layers))])
            spec["parallel"] = {"pipeline": {"stages": stages, "chunks": self.pick([1, 2, 4])}}
        elif kind == "placed":
            for i, layer in enumerate(layers):
                if isinstance(layer, dict) and self.random.random() < 0.5:
                    layers[i] = dict(layer, device=self.random.randint(0, 2))
        else:
            spec["parallel"] = kind
            if kind != "single":
                spec["devices"] = self.pick([1, 2, 3])

    def sound(self):
        spec, layers = self.pick([self.images, self.vectors, self.vectors, self.tokens])()
        spec = {"name": "fuzz", **spec, "model": layers, "optimizer": self.pick([{"sgd": 0.1}, {"adam": 0.01}, "adam_w"]),
                "steps": 2, "cores": 1, "memory_limit": 64}
        spec["data"]["batch_size"] = self.pick([1, 2, 4, 8])
        if self.random.random() < 0.3:
            spec["evaluate"] = True
        if self.random.random() < 0.2:
            spec["reproducible"] = self.pick([1, 2, 5])
        self.mode(spec, layers)
        return spec

    def change(self, spec):
        properties = self.schema["properties"]
        what = self.random.random()
        if what < 0.45 and isinstance(spec.get("model"), list):
            name = self.pick(self.layers)
            layer = {name: self.value(self.layers[name])}
            if self.random.random() < 0.1:
                key = self.pick(["name", "from", "init", "freeze", "device", "repeat", "checkpoint"])
                layer[key] = self.pick(INTEGERS + TEXTS + [None, [], True])
            model = spec["model"]
            at = self.random.randint(0, len(model))
            model[at:at + self.random.randint(0, 1)] = [layer]
            return
        key = self.pick([k for k in properties if k not in ("out", "version", "extends") or self.random.random() < 0.1])
        if what < 0.7:
            spec[key] = self.value(properties[key])
            if key == "epochs":
                spec.pop("steps", None)
        elif what < 0.93 and isinstance(spec.get("data"), dict):
            inside = properties["data"]["properties"]
            part = self.pick(inside)
            spec["data"][part] = self.value(inside[part])
        else:
            spec[key] = self.pick([Empty, None, [], {}, "", 0, -1, 2**63 - 1, math.inf, math.nan])
        # More than this machine should start; an absurd number is refused at once.
        if isinstance(spec.get("devices"), int) and 16 < spec["devices"] <= 4096:
            spec["devices"] = 4097

    def every_value(self):
        """Sound specs in which one key has one odd value: each key that the schema lists, empty, null and extreme."""
        def inner(schema):  # the map of keys that a schema describes, or nothing
            return schema.get("properties")

        values = [Empty, None, "", [], {}, True, "a", [Empty], *INTEGERS, math.inf, math.nan, 1e308]
        places = [((key,), schema) for key, schema in self.schema["properties"].items() if key != "out"]
        places += [((key, part), schema) for (key,), above in list(places) for part, schema in (inner(above) or {}).items()]
        homes = {"layer": ("model",), "loss": ("loss",), "optimizer": ("optimizer",), "schedule": ("schedule",),
                 "dataset": ("data", "dataset"), "transform": ("data", "transforms"), "mode": ("parallel",),
                 "precision": ("precision",)}
        for definition, home in homes.items():
            for name, schema in self.words(definition).items():
                places += [((*home, name, key), part) for key, part in ({None: schema} | (inner(schema) or {})).items()]
        for place, _ in places:
            for value in values:
                if place[0] == "devices" and isinstance(value, int) and 16 < value <= 4096:
                    continue
                yield self.with_value(place, value)

    def with_value(self, place, value):
        """A valid spec with the value at that path; None in the path is replaced by the name's own value."""
        spec = self.sound()
        inside = 2 if place[0] == "data" and len(place) > 1 else 1
        for name in reversed(place[inside:]):
            value = value if name is None else {name: value}
        if place[0] == "model" and len(place) > 1:
            spec["model"].insert(self.random.randint(0, len(spec["model"])), value)
        elif inside == 2:
            spec["data"][place[1]] = value
        else:
            spec[place[0]] = value
        if place[0] == "epochs":
            del spec["steps"]
        return self.write(spec)

    def write(self, spec):
        return "".join(f"{k}: {yaml(v)}\n" for k, v in spec.items())

    def text(self):
        spec = self.sound()
        for _ in range(self.pick([1, 1, 2, 3])):
            self.change(spec)
        return self.write(spec)


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(words, folder, seconds):
    """Exit code, output, CPU seconds, peak bytes. SIGINT stops training that still runs, which is no failure."""
    log = folder / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder, preexec_fn=limit,
                                   start_new_session=True)
    stopped, began = False, time.monotonic()
    poll = os.pidfd_open(process.pid)
    try:
        while not select.select([poll], [], [], seconds)[0]:
            waited = time.monotonic() - began
            if words[1] == "train" and not stopped and b"Epoch [" in log.read_bytes():
                os.killpg(process.pid, signal.SIGINT)
                stopped = True
            elif waited > 20 * seconds:
                os.killpg(process.pid, signal.SIGKILL)
                stopped = False
        _, status, use = os.wait4(process.pid, 0)
        process.returncode = 0
    finally:
        os.close(poll)
    code = os.waitstatus_to_exitcode(status)
    used = use.ru_utime + use.ru_stime
    if stopped and code == 130:
        code, used = 0, 0.0
    return code, log.read_text(errors="replace"), used, use.ru_maxrss * 1024, time.monotonic() - began


def failures(dptrain, text, folder, seconds, mib):
    """Sentences on what went wrong with one spec."""
    spec = folder / "spec.yaml"
    spec.write_text(text)
    out, codes = [], {}
    for command in ("check", "plan", "train"):
        code, said, used, peak, took = run([dptrain, command, str(spec)] + (["out=" + str(folder / "run")] if command == "train" else []),
                                           folder, seconds)
        codes[command] = code
        if code < 0:
            out.append(f"{command}: signal {-code} after {took:.1f} s\n{said[-300:]}")
        elif code not in CODES:
            out.append(f"{command}: exit {code}\n{said[-300:]}")
        if raw := RAW.search(said.replace(text, "")):
            line = next((l for l in said.splitlines() if raw.group(0) in l), "")
            if not re.match(r"\s*\d+ \| ", line):  # the spec's own line
                out.append(f"{command}: raw text {raw.group(0)!r} in: {line[:300]}")
        if used > seconds:
            out.append(f"{command}: {used:.1f} s of processor time")
        if peak > mib * MIB:
            out.append(f"{command}: {peak // MIB} MiB at its peak")
        if code != 0 and command == "check":
            break
    if codes.get("check") == 0 and codes.get("plan") == 2:
        out.append("plan refuses what check takes:\n" + said[-300:])
    if codes.get("plan") == 0 and codes.get("train") == 2:
        out.append("train refuses what plan takes:\n" + said[-300:])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--dptrain", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--every-value", action="store_true", help="each key of the schema with each odd value, not at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=1.0, help="of processor time that a command may take")
    parser.add_argument("--mib", type=int, default=256, help="of memory that a command may take")
    parser.add_argument("--show", type=int, metavar="N", help="print spec N of this seed, and run nothing")
    a = parser.parse_args()
    dptrain = str(a.dptrain.resolve())
    schema = json.loads(subprocess.run([dptrain, "schema"], capture_output=True, check=True).stdout)
    if a.show is not None:
        print(Specs(schema, f"{a.seed}/{a.show}").text(), end="")
        return 0
    home = pathlib.Path(tempfile.mkdtemp(prefix="dptrain-fuzz-"))
    listed = list(Specs(schema, a.seed).every_value()) if a.every_value else []
    count = len(listed) if a.every_value else a.count

    def one(number):
        folder = home / str(number)
        folder.mkdir()
        text = listed[number] if listed else Specs(schema, f"{a.seed}/{number}").text()
        try:
            return number, text, failures(dptrain, text, folder, a.seconds, a.mib)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    bad = 0
    try:
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            for number, text, found in pool.map(one, range(count)):
                if found:
                    bad += 1
                    print(f"== seed {a.seed}, spec {number}\n{text}-- " + "\n-- ".join(found), flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"{count} specs, {bad} failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
