"""NPY files of tools/real_files.py, compared with numpy.

init, check and one epoch run on the array with targets of two classes. Then a linear layer that passes its input on
shows every number that dptrain reads.
"""
import json

from real_tool import Result, Wrong, equal

NEEDS = ["numpy", "safetensors", "yaml"]
MOST_COLUMNS = 4000  # of a sample, for which weights of 64 MB are written

PASS_ON = """
name: numbers
data: {{dataset: {{npy: {{inputs: inputs.npy, targets: targets.npy{}}}}}, batch_size: 8{}}}
model: [{}]
loss: cross_entropy
optimizer: {{sgd: 0}}
epochs: 1
cores: 1
initial_weights: same.safetensors
"""


def array_by_numpy(path):
    """None if numpy itself refuses the file without pickle."""
    import numpy
    try:
        return numpy.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, UnicodeError):
        return None


def numbers_by_dptrain(tool, array):
    """What dptrain makes of the array, [N, numbers of a sample]. Tokens as the rows of an embedding with one number."""
    import numpy
    from safetensors.numpy import save_file
    sample = int(numpy.prod(array.shape[1:]))
    if sample > MOST_COLUMNS:
        return None
    if array.dtype.kind in "iu" and array.dtype != numpy.uint8:
        tokens = int(array.max()) + 1
        save_file({"same.weight": numpy.arange(tokens, dtype=numpy.float32).reshape(-1, 1)},
                  tool.folder / "same.safetensors")
        model, transforms = (f"{{embedding: {{num_embeddings: {tokens}, embedding_dim: 1}}, name: same}}, flatten", "")
    else:
        save_file({"same.weight": numpy.eye(sample, dtype=numpy.float32),
                   "same.bias": numpy.zeros(sample, numpy.float32)}, tool.folder / "same.safetensors")
        model = f"flatten, {{linear: {sample}, name: same}}"
        transforms = ", transforms: [to_tensor]" if array.dtype == numpy.uint8 else ""
    (tool.folder / "numbers.yaml").write_text(PASS_ON.format("", transforms, model))
    tool.run("numbers.yaml", "out=numbers")
    tool.run("predict", "numbers", "inputs.npy", "-o", "numbers.npy")
    return numpy.load(tool.folder / "numbers.npy")


def check_array(tool, path):
    import numpy
    import yaml
    array = array_by_numpy(path)
    (tool.folder / f"inputs{path.suffix}").write_bytes(path.read_bytes())
    samples = len(array) if isinstance(array, numpy.ndarray) and array.ndim > 0 else 2
    numpy.save(tool.folder / "targets.npy", numpy.arange(samples, dtype=numpy.int64) % 2)
    tool.run("init", ".", "--out", "spec.yaml", "--force")
    if array is None:
        raise Wrong("numpy refuses what dptrain reads")
    spec = yaml.safe_load((tool.folder / "spec.yaml").read_text())
    tool.run("check", "spec.yaml")
    tool.run("spec.yaml", "epochs=1", "cores=1", "out=run")
    form = json.loads(next((tool.folder / "run").rglob("data.json")).read_text())
    equal("shape of a sample", form["sample"]["shape"], list(array.shape[1:]))
    found = next((t["normalize"] for t in spec["data"].get("transforms", []) if isinstance(t, dict)), None)
    if found:
        axes = tuple(i for i in range(array.ndim) if i != 1)
        values = array.astype(float) / (255 if array.dtype == numpy.uint8 else 1)
        for ours, theirs in zip(found["mean"], values.mean(axis=axes)):
            if abs(ours - theirs) > 1e-6 * max(1, abs(theirs)):
                raise Wrong(f"mean: dptrain {ours}, numpy {theirs}")
    ours = numbers_by_dptrain(tool, array)
    if ours is None:
        return Result("same", f"{array.shape} {array.dtype}, only its form")
    theirs = array.reshape(len(array), -1).astype(numpy.float32) / numpy.float32(
        255 if array.dtype == numpy.uint8 else 1)
    equal("shape", ours.shape, theirs.shape)
    # A sum with zeros has the number itself, up to the sign of 0.
    if not numpy.array_equal(ours, theirs):
        raise Wrong(f"numbers differ by up to {numpy.abs(ours - theirs).max()}")
    return Result("same", f"{array.shape} {array.dtype}")
