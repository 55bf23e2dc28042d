"""Weight files of tools/real_files.py: safetensors, and files of torch.save, which are read here without PyTorch.

Each matrix and kernel becomes the weight of a layer whose window covers its input, so that its output is a product
that numpy computes, too. A run without a step must then write the same bits again.
"""
import collections
import io
import pickle
import struct
import zipfile

from real_tool import Result, Wrong, equal

NEEDS = ["numpy", "safetensors"]
MOST_LAYERS = 12  # of a file
TYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8",
         "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "?"}

SPEC = """
name: weights
data: {{dataset: {{npy: {{inputs: x.npy, targets: y.npy}}}}, batch_size: 4}}
model: [{}, flatten]
loss: mse_loss
optimizer: {{sgd: 0}}
epochs: 1
cores: 1
initial_weights: {{file: {}, partial: true}}
blocks: {{{}}}
"""


class Unpickler(pickle.Unpickler):
    """Reads tensors as (storage key, type, offset, shape, strides)."""

    def persistent_load(self, pid):
        return pid  # ("storage", type, key, location, elements, ...)

    def find_class(self, module, name):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, strides, *rest: ("tensor", storage, offset, shape, strides)
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *rest: tensor
        if module == "torch" and name.endswith("Storage"):
            return name
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        raise pickle.UnpicklingError(f"{module}.{name}")


def tensor_of(numpy, entry, storages):
    _, storage, offset, shape, strides = entry
    values = numpy.frombuffer(storages(str(storage[2])), TYPES[storage[1]])
    return numpy.lib.stride_tricks.as_strided(values[offset:], shape, [s * values.itemsize for s in strides])


def torch_save(path):
    """The tensors of a state_dict by name; None if the file is none."""
    import numpy
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                root = next(n for n in archive.namelist() if n.endswith("data.pkl"))[:-len("data.pkl")]
                found = Unpickler(io.BytesIO(archive.read(root + "data.pkl"))).load()
                return {name: tensor_of(numpy, t, lambda key: archive.read(f"{root}data/{key}"))
                        for name, t in found.items()}
        with open(path, "rb") as file:  # before PyTorch 1.6
            for _ in range(3):  # a magic number, the format's version, sizes of the machine
                Unpickler(file).load()
            found, keys, storages = Unpickler(file).load(), Unpickler(file).load(), {}
            sizes = {str(t[1][2]): numpy.dtype(TYPES[t[1][1]]).itemsize for t in found.values()}
            for key in map(str, keys):
                count = struct.unpack("<q", file.read(8))[0]
                storages[key] = file.read(count * sizes[key])
        return {name: tensor_of(numpy, t, storages.__getitem__) for name, t in found.items()}
    except (pickle.UnpicklingError, StopIteration, KeyError, AttributeError, TypeError, EOFError):
        return None


def tensors_of(path):
    from safetensors.numpy import load_file
    return load_file(path) if path.suffix == ".safetensors" else torch_save(path)


def layer_of(name, weight, bias):
    """The layer, blocks that make its dotted name, and the shape of its input, which its window covers."""
    end = f", bias: {'true' if bias is not None else 'false'}}}"
    if weight.ndim == 2:
        entry = f"linear: {{out_features: {len(weight)}{end}"
    else:
        window = list(weight.shape[2:]) if weight.ndim > 3 else weight.shape[2]
        entry = f"conv{weight.ndim - 2}d: {{out_channels: {len(weight)}, kernel_size: {window}{end}"
    blocks = []
    parts = name.split(".")
    for depth, part in enumerate(reversed(parts)):
        layer = f"{{{entry}, name: '{part}'}}"
        if depth + 1 < len(parts):
            blocks.append(f"block{depth}: {{layers: [{layer}]}}")
            entry = f"block{depth}: {{}}"
    return layer, ", ".join(blocks), weight.shape[1:]


def layers_in(tensors):
    for full, weight in tensors.items():
        name, _, last = full.rpartition(".")
        if last == "weight" and 2 <= weight.ndim <= 4 and weight.dtype.kind == "f" and name and weight.size < 1 << 22:
            bias = tensors.get(name + ".bias")
            if bias is None or bias.shape == weight.shape[:1]:
                yield name, weight, bias


def check_layer(tool, path, layer):
    import numpy
    from safetensors.numpy import load_file
    name, weight, bias = layer
    model, blocks, sample = layer_of(name, weight, bias)
    random = numpy.random.default_rng(3)
    x = random.normal(size=(4, *sample)).astype(numpy.float32)
    numpy.save(tool.folder / "x.npy", x)
    numpy.save(tool.folder / "y.npy", numpy.zeros((4, len(weight)), numpy.float32))
    (tool.folder / "spec.yaml").write_text(SPEC.format(model, path, blocks))
    tool.run("check", "spec.yaml")
    run = f"run-{name}"
    tool.run("spec.yaml", f"out={run}")
    written = load_file(tool.folder / run / "model.safetensors")
    equal(f"{name}.weight", written[f"{name}.weight"].tobytes(), weight.astype(numpy.float32).tobytes())
    if bias is not None:
        equal(f"{name}.bias", written[f"{name}.bias"].tobytes(), bias.astype(numpy.float32).tobytes())
    tool.run("predict", run, "x.npy", "-o", "out.npy")
    ours = numpy.load(tool.folder / "out.npy").reshape(4, -1)
    flat = weight.astype(float).reshape(len(weight), -1)
    theirs = x.astype(float).reshape(4, -1) @ flat.T + (0 if bias is None else bias.astype(float))
    size = numpy.abs(x.astype(float)).reshape(4, -1) @ numpy.abs(flat).T + (0 if bias is None else numpy.abs(bias))
    # A sum of k products in float32, in any order: k units of 2^-24 of the sum of their sizes.
    if not (numpy.abs(ours - theirs) <= (flat.shape[1] + 2) * 2.0**-24 * size).all():
        raise Wrong(f"outputs of {name} differ by up to {numpy.abs(ours - theirs).max()}")


def check_weights(tool, path):
    tensors = tensors_of(path)
    layers = list(layers_in(tensors or {}))
    if not layers:  # what does dptrain say?
        check_refusal(tool, path)
        return Result("skipped", "no matrices or kernels" if tensors else "no state_dict")
    for layer in layers[:MOST_LAYERS]:
        check_layer(tool, path, layer)
    return Result("same", f"{min(len(layers), MOST_LAYERS)} of {len(tensors)} tensors as layers")


def check_refusal(tool, path):
    import numpy
    numpy.save(tool.folder / "x.npy", numpy.zeros((4, 2), numpy.float32))
    numpy.save(tool.folder / "y.npy", numpy.zeros((4, 1), numpy.float32))
    (tool.folder / "spec.yaml").write_text(SPEC.format("{linear: 1}", path, ""))
    tool.run("check", "spec.yaml")
