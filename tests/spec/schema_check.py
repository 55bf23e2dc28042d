#!/usr/bin/env python3
"""Compares the JSON Schema of `dptrain schema` with `dptrain check`, by Python's jsonschema.

Every config is valid. Of the specs in tests/spec/broken, each that a schema can know to be wrong is invalid, and texts of
errors name the place and the names that are allowed. Ends with 77, "skipped", without the modules jsonschema and yaml:
`tools/setup.sh` installs Debian's.

  tests/spec/schema_check.py --dptrain build/src/dptrain [--list]
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError:
    debian = "/usr/bin/python3"
    if os.path.realpath(sys.executable) != os.path.realpath(debian) and os.access(debian, os.X_OK):
        os.execv(debian, [debian, *sys.argv])  # the packages of tools/setup.sh are this one's
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent


class Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, as editors have it: `yes` is text, 1e-3 a number."""


Loader.yaml_implicit_resolvers = {}
for kind, first, pattern in (("null", "~nN", r"~|null|Null|NULL|"), ("bool", "tTfF", r"true|True|TRUE|false|False|FALSE"),
                             ("int", "-+0123456789", r"[-+]?[0-9]+"),
                             ("float", "-+.0123456789", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan")):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(f"^(?:{pattern})$"), list(first) + [""] * (kind == "null"))
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value.replace(".inf", "inf").replace(".nan", "nan")))


def errors(validator, tree):
    """Texts of errors, each with its place."""
    return [f"{'.'.join(map(str, e.absolute_path)) or 'top level'}: {e.message}" for e in validator.iter_errors(tree)]


def read(text):
    """The tree, or nothing where the YAML itself is wrong, which editors tell by themselves."""
    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def refused(dptrain, path):
    return subprocess.run([dptrain, "check", "--no-data", path], capture_output=True).returncode == 2


# What no schema can know, or not with errors at their places: why the file is refused.
UNKNOWABLE = {
    "names of blocks, their parameters and sizes": "block_explodes block_misspelt block_needs_parameter block_stands_in_itself "
                                                   "block_takes_nothing block_unknown_parameter block_wrong_type",
    "other files": "extends_cycle extends_itself extends_missing",
    "how a value is written": "control_character duplicate_key duplicate_key_inside empty_value exponent_for_integer "
                              "norm_channels not_a_number octal plus_sign real_for_integer slip_brace_without_space",
    "keys that depend on each other": "device_against_devices keys_that_exclude pipeline_interleaved pipeline_stages_a_device",
    "lengths of lists, sums over the model": "list_length repeat_explodes same_name_twice",
}

REST = "data: {dataset: fashion_mnist, batch_size: 100}\nloss: cross_entropy\noptimizer: {adam: 0.01}\n"
BLOCK = "blocks:\n  mlp: {parameters: {width: 64, p: null}, layers: [linear: '${width}', dropout: '${p}', '${p}']}\n"
VALID = [
    REST + "model: [flatten, {linear: 10}]\n",
    REST + "model: [{linear: {out_features: 10, bias: True}, freeze: FALSE}]\nparallel: {ddp: 2}\n",
    REST + BLOCK + "model: [{mlp: {p: 0.1}, repeat: 3, name: m}, mlp, {residual: [mlp]}, {linear: 10, from: m}]\n",
    REST + "model: [{residual: {body: [relu], shortcut: []}}, {linear: 3, init: {weight: {normal: 0.1}, bias: zeros}}]\n",
    REST + "model: [relu]\nepochs: null\ncores: none\nclip_grad_norm: 1\nreproducible: 8\nevaluate: true\nsave: {keep: 1}\n",
    REST + "model: [relu]\nschedule: {warmup: 10, interval: step}\ndevices: [cpu:0, 1]\nversion: 1\n",
    "extends: base.yaml\nmodel: [{my_block: 3}]\ndata: {limit: 10}\n",
]
# A spec, and for each error its place and what its text must hold.
INVALID = [
    ("model: [flatten, {lineer: 10}]", [("model.1", "'lineer'", "'linear'", "'conv2d'", "'residual'")]),
    ("model: [flaten, {linear: 10}]", [("model.0", "'flaten'", "'flatten'")]),
    ("model: [{residual: [reluu]}]", [("model.0.residual.0", "'reluu'", "'relu'")]),
    ("model: [{residual: {body: [{reluu: null}]}}]", [("model.0.residual.body.0", "'reluu'", "'relu'")]),
    ("model: [{linear: {out_feature: 10}}]", [("model.0.linear", "'out_features' is a required property"),
                                              ("model.0.linear", "'out_feature'", "'out_features'", "'bias'")]),
    ("model: [{linear: ten}]", [("model.0.linear", "'ten' is not of type", "'integer'")]),
    ("model: [{linear: {out_features: 10, bias: 1}}]", [("model.0.linear.bias", "1 is not of type 'boolean'")]),
    ("model: [{linear: 0}]", [("model.0.linear", "0 is less than the minimum of 1")]),
    ("model: [{conv2d: {out_channels: 1, kernel_size: 3, padding: sane}}]", [("model.0.conv2d.padding", "'same'", "'valid'")]),
    ("model: [{conv2d: 3}]", [("model.0.conv2d", "3 is not of type 'object'")]),
    ("model: [{linear: 3, relu: null}]", [("model.0", "'relu'", "'linear'"), ("model.0", "'linear'", "'relu'")]),
    ("model: [linear]", [("model.0", "'linear' is not of type 'object'")]),
    ("model: [relu]\nepoch: 3", [("top level", "'epoch'", "'epochs'")]),
    ("model: [relu]\nschedule: {cosine: {}}", [("schedule", "'cosine'", "'cosine_annealing'")]),
    ("model: [relu]\nparallel: {ddp: {timeout: fast}}", [("parallel.ddp.timeout", "'fast' is not of type 'number'")]),
    (BLOCK + "model: [{mlp: {p: 0.1}}, {linear: '${x}'}]", [("model.1.linear", "'${x}'")]),
    (BLOCK.replace("'${width}'", "{out_feature: 1}") + "model: [mlp]",
     [("blocks.mlp.layers.0.linear", "'out_feature'", "'bias'"), ("blocks.mlp.layers.0.linear", "'out_features' is a required")]),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--list", action="store_true", help="print the errors of each broken spec")
    a = parser.parse_args()
    dptrain = os.path.abspath(a.dptrain)
    schema = json.loads(subprocess.run([dptrain, "schema"], capture_output=True, check=True).stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    bad = []
    configs = sorted((HERE.parent.parent / "configs").rglob("*.yaml"))
    for path in configs:
        bad += [f"{path}: {e}" for e in errors(validator, read(path.read_text()))]
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
        if not named or not (path.parent / named[1]).is_file() or json.loads((path.parent / named[1]).read_text()) != schema:
            bad.append(f"{path}: its first line must name the schema that `dptrain schema` prints")
    if len(configs) < 18:
        bad.append(f"only {len(configs)} configs were checked")
    for text in VALID:
        bad += [f"{text}\n{e}" for e in errors(validator, read(text))]
    for text, expected in INVALID:
        found = errors(validator, read(REST + text + "\n"))
        if a.list:
            print(text, *found, sep="\n    ")
        places = [e.split(": ")[0] for e in found]
        told = [any(e.startswith(place + ": ") and all(part in e for part in parts) for e in found) for place, *parts in expected]
        if not all(told) or sorted(places) != sorted(place for place, *_ in expected):
            bad.append("\n    ".join([text, *found, f"but expected: {expected}"]))
    unknowable = {name for names in UNKNOWABLE.values() for name in names.split()}
    seen = 0
    for path in sorted((HERE / "broken").glob("*.yaml")):
        text = path.read_bytes().decode(errors="replace")
        tree = read(text)
        if tree is None or "*" in text or not refused(dptrain, path):  # an alias may stand in itself
            continue
        found = errors(validator, tree)
        if a.list:
            print(path.name, *found, sep="\n    ")
        if bool(found) == (path.stem in unknowable):
            bad.append(f"{path.name}: the schema {'rejects it: strike it off the list' if found else 'accepts it'}")
        seen += 1
    if seen < 100:
        bad.append(f"only {seen} broken specs were compared")
    print(*bad, f"{seen} broken specs compared, {len(bad)} failures", sep="\n")
    sys.exit(bool(bad))


main()
