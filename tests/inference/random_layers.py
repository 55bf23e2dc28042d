"""Compares random settings of every layer with onnxruntime and with the exported PyTorch program.

The layers are those of `dptrain schema`; one without settings here fails the test. The nets have one branch per layer,
from the input to a concat, whose parts are compared one by one. other_programs.py has the comparison and exit code 77.

  random_layers.py --dptrain build/src/dptrain [--seed N] [--count N]
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import other_programs

SPEC = """
data: {{dataset: {{npy: {{inputs: in.npy, targets: t.npy}}}}, batch_size: 2, transforms: {transforms}}}
model:
{model}
loss: cross_entropy
optimizer: {{adam: 0.1}}
steps: 1
seed: {seed}
"""
VOCABULARY = 7
TOKENS, ANY, CHANNELS = (-1,), (0, 1, 2, 3), (1, 2, 3)


class Draw(random.Random):
    """Draws settings for samples of `shape`: tokens [L], or [C, ...] with `dims` more extents."""

    shape, dims, branch = [], 0, 0

    def number(self, low, high):
        return round(self.uniform(low, high), 2)

    def flag(self):
        return self.random() < 0.5

    def each(self, low, high):
        """An integer for each extent behind the channels."""
        return [self.randint(low, high) for _ in range(self.dims)]

    def divisor(self, number):
        return self.choice([n for n in range(1, number + 1) if number % n == 0])

    def some(self, **settings):
        """A random part of the settings; the others keep their defaults."""
        return {key: value for key, value in settings.items() if self.flag()}

    def dim(self):
        """A dimension behind the batch, counted from the front or from the back."""
        dim = self.randint(1, len(self.shape))
        return dim if self.flag() else dim - len(self.shape) - 1


def window(r, kind):
    kernel, stride = r.each(1, 3), r.each(1, 3)
    dilation = [1] * r.dims if kind == "avg_pool" else r.each(1, 2)
    # At most half of a pool's window.
    reach = kernel if "pool" in kind else [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    settings = {"kernel_size": kernel, "stride": stride, "padding": [r.randint(0, n // 2) for n in reach]}
    if kind != "avg_pool":
        settings["dilation"] = dilation
    elif r.dims > 1:
        settings |= r.some(divisor_override=r.randint(1, 9))
    if "pool" in kind:
        return settings | r.some(ceil_mode=True, **({"count_include_pad": False} if kind == "avg_pool" else {}))
    settings |= {"out_channels": r.shape[0], "groups": r.choice([1, 2])} | r.some(bias=False)
    if kind == "conv_transpose":
        return settings | {"output_padding": [r.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation)]}
    settings |= r.some(padding_mode=r.choice(["reflect", "replicate", "circular"]))
    return settings | r.choice([{}, {}, {"padding": "same", "stride": 1}, {"padding": "valid"}])


def upsample(r):
    size = r.choice([{"size": r.each(1, 12)}, {"scale_factor": [r.number(0.5, 2.5) for _ in range(r.dims)]}])
    if r.flag():
        return size | r.some(mode=r.choice(["nearest", "nearest-exact"]))
    mode = r.choice([["linear"], ["bilinear", "bicubic"], ["trilinear"]][r.dims - 1])
    return size | {"mode": mode} | r.some(align_corners=True)


def pad(r):
    mode = r.choice(["constant", "reflect", "replicate", "circular"]) if r.dims else "constant"
    dims = r.randint(1, min(3, len(r.shape)) if mode == "constant" else r.dims)
    settings = {"padding": [r.randint(-1, 3) for _ in range(2 * dims)], "mode": mode}
    return settings | (r.some(value=r.number(-2, 2)) if mode == "constant" else {})


def row_norm(r, **more):
    last = r.shape[-r.randint(1, len(r.shape)):]
    return r.some(normalized_shape=last, eps=r.number(0.01, 0.2), elementwise_affine=False, **more)


def channel_norm(r, **more):
    return r.some(eps=r.number(0.01, 0.2), affine=r.flag(), bias=False, **more)


def batch_norm(r):
    return channel_norm(r, momentum=r.choice([None, r.number(0.1, 0.9)]))


def flatten(r):
    start = r.randint(1, len(r.shape))
    return {"start_dim": start} | r.some(end_dim=r.randint(start, len(r.shape)))


def select(r):
    dim = r.dim()
    extent = r.shape[dim if dim < 0 else dim - 1]
    return {"index": r.randint(-extent, extent - 1), "dim": dim}


def permute(r):
    dims = r.sample(range(1, len(r.shape) + 1), len(r.shape))
    return dims if r.flag() else [0, *dims]


def several(r, word):
    """A layer of several inputs behind layers that make them."""
    a, b, settings = f"a{r.branch}", f"b{r.branch}", {"dim": r.dim()} if word == "concat" else None
    inputs = r.choice([[a, b], ["input", b, a], [b, "input"]])
    return [{"tanh": None, "name": a}, {"linear": r.shape[-1], "name": b}, {word: settings, "from": inputs}]


def embedding(r):
    settings = {"num_embeddings": r.randint(VOCABULARY, 12), "embedding_dim": r.randint(1, 6)}
    settings |= r.some(padding_idx=r.randint(-2, 2))
    return [{"embedding": settings}, {r.choice(["position_embedding", "class_token", "identity"]): None}]


# The `dims` of samples that a layer takes, and what makes its settings, or a list of entries.
LAYERS = {
    "flatten": (ANY, flatten),
    "linear": (ANY, lambda r: {"out_features": r.randint(1, 6)} | r.some(bias=False)),
    "embedding": (TOKENS, embedding),
    "position_embedding": ((1,), lambda r: r.some(num_embeddings=r.shape[0] + r.randint(0, 3))),
    "class_token": ((1,), lambda r: None),
    "dropout": (ANY, lambda r: {"p": r.number(0, 1)}),
    "dropout2d": (CHANNELS, lambda r: {"p": r.number(0, 1)}),
    "leaky_relu": (ANY, lambda r: r.some(negative_slope=r.number(-0.5, 0.5))),
    "elu": (ANY, lambda r: r.some(alpha=r.number(0.1, 3))),
    "softplus": (ANY, lambda r: r.some(beta=r.number(0.2, 4), threshold=r.number(1, 25))),
    "hardtanh": (ANY, lambda r: r.some(min_val=r.number(-3, 0.5), max_val=r.number(0.6, 3))),
    "celu": (ANY, lambda r: r.some(alpha=r.choice([-4, 1]) * r.number(0.5, 3))),
    "hardshrink": (ANY, lambda r: r.some(lambd=r.number(0, 2))),
    "softshrink": (ANY, lambda r: r.some(lambd=r.number(0, 2))),
    "threshold": (ANY, lambda r: {"threshold": r.number(-1, 1), "value": r.number(-2, 2)}),
    "gelu": (ANY, lambda r: r.some(approximate="tanh")),
    "glu": (ANY, lambda r: {"dim": 1} if r.shape[-1] % 2 or r.flag() else {}),
    "softmax": (ANY, lambda r: {"dim": r.dim()}),
    "log_softmax": (ANY, lambda r: {"dim": r.dim()}),
    "layer_norm": (ANY, lambda r: row_norm(r, bias=False)),
    "rms_norm": (ANY, row_norm),
    "multihead_attention": ((1,), lambda r: {"num_heads": r.divisor(r.shape[-1])} | r.some(causal=True, bias=False)),
    "permute": (ANY, lambda r: {"dims": permute(r)}),
    "reshape": (ANY, lambda r: {"shape": r.choice([[-1], [2, -1], [r.shape[-1], -1], [-1, 2, r.shape[0] // 2]])}),
    "select": (CHANNELS, select),
    # A group of one element has no variance: PyTorch's rounding errors are then divided by the root of eps.
    "group_norm": (ANY, lambda r: {"num_groups": r.divisor(r.shape[0] // (1 if r.dims else 2))} | channel_norm(r)),
    "instance_norm": (CHANNELS, channel_norm),
    "batch_norm1d": ((0, 1), batch_norm),
    "batch_norm2d": ((2,), batch_norm),
    "batch_norm3d": ((3,), batch_norm),
    "upsample": (CHANNELS, upsample),
    "pixel_shuffle": ((2,), lambda r: {"upscale_factor": 2}),
    "pixel_unshuffle": ((2,), lambda r: [{"upsample": {"size": [6, 9]}}, {"pixel_unshuffle": 3}]),
    "pad": (ANY, pad),
    "prelu": (ANY, lambda r: {"num_parameters": r.choice([1, r.shape[0]])} | r.some(init=r.number(-0.5, 0.5))),
    "residual": (ANY, lambda r: {"body": ["gelu", {"linear": r.shape[-1]}]} | r.some(shortcut=["tanh", "layer_norm"])),
}
for word in "add", "multiply", "concat":
    LAYERS[word] = (ANY, lambda r, word=word: several(r, word))
for word in ("identity", "relu", "selu", "silu", "sigmoid", "tanh", "hardswish", "relu6", "mish", "hardsigmoid",
             "softsign", "logsigmoid", "tanhshrink"):
    LAYERS[word] = (ANY, lambda r: None)
for dims in CHANNELS:
    for kind in "conv", "conv_transpose", "max_pool", "avg_pool":
        LAYERS[f"{kind}{dims}d"] = ((dims,), lambda r, kind=kind: window(r, kind))
    for kind in "avg", "max":
        LAYERS[f"adaptive_{kind}_pool{dims}d"] = ((dims,), lambda r: {"output_size": r.choice([1, r.each(1, 10)])})

# What `export` refuses: a layer for samples of this shape, and the message.
REFUSED = [(shape, {f"batch_norm{dims}d": {"track_running_stats": False}},
            "layer '0' normalizes with the statistics of a batch (track_running_stats: false)")
           for dims, shape in ((1, [6]), (1, [4, 5]), (2, [4, 5, 6]), (3, [4, 5, 6, 5]))]


def widths_of_concat(path):
    """The widths of what the last operator of an ONNX model concatenates."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True).graph
    widths = {v.name: v.type.tensor_type.shape.dim[-1].dim_value for v in [*graph.value_info, *graph.input]}
    return [widths[name] for name in graph.node[-1].input]


class Test(other_programs.Test):
    branches, widths, runs = [], [], 0

    def compare(self, name, program, got, want):
        """Each branch has the tolerance of its own largest output."""
        if self.onnx and not self.widths:
            self.widths = widths_of_concat(self.folder / "m.onnx")
        begin = 0
        for branch, width in zip(self.branches if self.onnx else [""], self.widths or want.shape[1:]):
            part = slice(begin, begin + width)
            super().compare(f"{name}: {branch}", program, got[:, part], want[:, part])
            begin += width

    def train(self, entries, shape, seed, tokens=False):
        """The run directory, and the model's text."""
        np, model = self.np, "\n".join(f"  - {json.dumps(entry)}" for entry in entries)
        inputs = np.random.default_rng(seed).standard_normal((4, *shape)).astype(np.float32)
        if tokens:
            inputs = np.arange(inputs.size, dtype=np.int32).reshape(inputs.shape) % VOCABULARY
        np.save(self.folder / "in.npy", inputs)
        np.save(self.folder / "t.npy", np.arange(4) % 2)
        # Activations bend beyond 1, too.
        transforms = "[{divide: 0.25}]" if seed % 2 and not tokens else "[]"
        (self.folder / "net.yaml").write_text(SPEC.format(model=model, seed=seed, transforms=transforms))
        self.runs += 1
        self.run("net.yaml", f"out=run{self.runs}")
        return self.folder / f"run{self.runs}", model

    def net(self, r, seed):
        """All layers that take samples of r.shape."""
        words = [word for word, (dims, _) in LAYERS.items() if r.dims in dims]
        entries, ends, self.branches, self.widths = [], [], [], []
        for r.branch, word in enumerate(words * (1 if len(words) > 1 else 3)):
            made, end = LAYERS[word][1](r), f"{word}_{r.branch}"
            chain = made if isinstance(made, list) else [{word: made}]
            self.branches.append(f"{end}, {json.dumps(chain)}")
            entries += [{"from": "input"} | chain[0], *chain[1:], {"flatten": None, "name": end}]
            ends.append(end)
        run, _ = self.train([*entries, {"concat": None, "from": ends}], r.shape, seed, r.dims < 0)
        self.model(f"seed {seed}, samples {r.shape}", run)

    def refuse(self, shape, layer, message):
        run, model = self.train([layer, "flatten", {"linear": 2}], shape, 0)
        done = subprocess.run([self.dptrain, "export", run, "-o", "m.onnx"], cwd=self.folder, text=True,
                              capture_output=True)
        if done.returncode != 2 or message not in done.stderr:
            self.failures.append(f"export does not refuse\n{model}\n{done.stderr}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dptrain", required=True)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--count", type=int, default=8, help="nets of each number of dimensions")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        test = Test(pathlib.Path(given.dptrain).resolve(), pathlib.Path(name))
        schema = json.loads(test.run("schema"))["definitions"]["layer"]
        words = schema["properties"].keys() - schema["not"]["propertyNames"]["enum"]
        if words != LAYERS.keys():
            sys.exit(f"layers that are not in both the registry and LAYERS: {sorted(words ^ LAYERS.keys())}")
        for seed in range(given.seed, given.seed + given.count):
            r = Draw(seed)
            for r.dims in *TOKENS, *ANY:
                r.shape = [r.choice([4, 8]), *r.each(5, (0, 24, 12, 8)[r.dims])]
                test.net(r, seed)
        for each in REFUSED:
            test.refuse(*each)
    print(f"{test.models} models; the largest difference is {test.worst} of the tolerance")
    if test.failures:
        sys.exit("\n".join(test.failures))


if __name__ == "__main__":
    other_programs.need_packages()
    main()
