"""Image files of tools/real_files.py, compared with Pillow.

init, check and one epoch run on a folder of two classes with the image in each. Then a net that passes its input on
shows every pixel that dptrain reads.
"""
import json
import shutil

from real_tool import Result, Wrong, equal

NEEDS = ["PIL", "numpy", "safetensors", "yaml"]

PASS_ON = """
name: pixels
data: {{dataset: {{image_folder: {{path: images{}}}}}, transforms: [to_tensor], batch_size: 2}}
model: [{{conv2d: {{out_channels: 3, kernel_size: 1}}, name: same}}, flatten]
loss: cross_entropy
optimizer: {{sgd: 0}}
epochs: 1
cores: 1
initial_weights: same.safetensors
"""


def pixels_by_pillow(path, exif):
    """u8 [3, height, width], as torchvision's loader."""
    import numpy
    from PIL import Image, ImageOps
    with Image.open(path) as image:
        image = (ImageOps.exif_transpose(image) if exif else image).convert("RGB")
        return numpy.asarray(image).transpose(2, 0, 1)


def pixels_by_dptrain(tool, path, exif):
    import numpy
    from safetensors.numpy import save_file
    one = numpy.eye(3, dtype=numpy.float32).reshape(3, 3, 1, 1)
    save_file({"same.weight": one, "same.bias": numpy.zeros(3, numpy.float32)}, tool.folder / "same.safetensors")
    (tool.folder / "pixels.yaml").write_text(PASS_ON.format(", exif: true" if exif else ""))
    run = f"pixels{int(exif)}"
    tool.run("pixels.yaml", f"out={run}")
    tool.run("predict", run, path, "-o", "pixels.npy")
    return numpy.rint(numpy.load(tool.folder / "pixels.npy")[0] * 255).astype(int)


def check_statistics(spec, path):
    """The means and standard deviations of the channels after init's transforms."""
    import numpy
    from PIL import Image
    found = next((t["normalize"] for t in spec["data"].get("transforms", []) if isinstance(t, dict)), None)
    settings = spec["data"]["dataset"]["image_folder"]
    if found is None or "resize" in settings or "crop" in settings:
        return
    with Image.open(path) as image:
        values = numpy.asarray(image.convert("RGB")).reshape(-1, 3) / 255
    for name, theirs in (("mean", values.mean(0)), ("std", values.std(0))):
        for ours, each in zip(found[name], theirs):
            if abs(ours - each) > 1e-6:  # init writes the digits of a float
                raise Wrong(f"{name}: dptrain {ours}, Pillow {each}")


def check_image(tool, path):
    import numpy
    import yaml
    for kind in ("a", "b"):
        (tool.folder / "images" / kind).mkdir(parents=True)
        shutil.copy(path, tool.folder / "images" / kind)
    copy = tool.folder / "images" / "a" / path.name
    tool.run("init", "images", "--out", "spec.yaml", "--force")
    spec = yaml.safe_load((tool.folder / "spec.yaml").read_text())
    check_statistics(spec, path)
    tool.run("check", "spec.yaml")
    tool.run("spec.yaml", "epochs=1", "cores=1", "out=run")
    answer = json.loads(tool.run("predict", "run", copy, "--json"))["predictions"]
    equal("predictions", len(answer), 1)
    for exif in (False, True):
        theirs = pixels_by_pillow(path, exif)
        ours = pixels_by_dptrain(tool, copy, exif)
        equal("numbers", ours.size, theirs.size)
        difference = numpy.abs(ours - theirs.reshape(-1)).max()
        if difference > 0:
            raise Wrong(f"pixels differ by up to {difference} of 255{' with exif' if exif else ''}")
    return Result("same", "x".join(map(str, theirs.shape)))
