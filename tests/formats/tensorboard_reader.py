"""Trains, resumes, and reads the event files as TensorBoard does. Exit code 77: tensorboard is not installed."""
import argparse, json, math, pathlib, subprocess, sys, tempfile
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
except ImportError:
    sys.exit(77)

SPEC = """
data:
  dataset: {synthetic_images: {samples: 56, test_samples: 11, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.05}
epochs: 4
evaluate: true
save: {every_epochs: 1}
cores: 1
log: {every: 1, tensorboard: true}
"""
arguments = argparse.ArgumentParser()
arguments.add_argument("--dptrain", required=True)
dptrain = pathlib.Path(arguments.parse_args().dptrain).resolve()


def points(run):
    """Tag: [(step, value)], and the accumulator."""
    seen = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
    seen.Reload()
    return {tag: [(e.step, e.value) for e in seen.Scalars(tag)] for tag in seen.Tags()["scalars"]}, seen


def check(ok, what):
    if not ok:
        sys.exit(f"wrong: {what}")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "t.yaml").write_text(SPEC)
    command = [dptrain, "t.yaml", "out=run"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    run = folder / "run"
    first, seen = points(run)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [r for r in records if "step" in r]
    epochs = [r for r in records if "step" not in r]
    near = lambda a, b: math.isclose(a, b, rel_tol=1e-6)  # TensorBoard has floats
    check([s for s, _ in first["step.loss"]] == list(range(1, 21)), "steps of step.loss")
    check(all(near(v, r["loss"]) for (_, v), r in zip(first["step.loss"], steps)), "step.loss")
    check([s for s, _ in first["loss"]] == [5, 10, 15, 20], "steps of loss")
    check(all(near(v, r["test.accuracy"]) for (_, v), r in zip(first["test.accuracy"], epochs)), "test.accuracy")
    check({"lr", "test.loss", "samples_per_second"} <= set(first), f"tags {sorted(first)}")
    text = seen.Tensors("spec")[0].tensor_proto.string_val[0].decode()
    check("    epochs: 4\n" in text, "the spec's text")
    content = seen.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    check(settings["optimizer.sgd.lr"].number_value == 0.05, "the settings")
    # From the end of the second epoch: the same curves, without points that appear twice.
    again = command + ["--resume", "run/checkpoints/step-000010"]
    subprocess.run(again, cwd=folder, check=True, capture_output=True)
    check(len(list(run.glob("events.out.tfevents.*"))) == 2, "a file per process")
    second, _ = points(run)
    for tag in ("step.loss", "loss", "test.loss", "lr"):
        check(second[tag] == first[tag], f"{tag} after the resume: {second[tag]} and {first[tag]}")
