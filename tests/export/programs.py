"""Runs exported programs of specs with `sampler: weighted`, `mixup` and `cutmix` in PyTorch.

  weighted     the losses are dptrain's: single, an order that stays, reproducible shards, ddp
  mixed        the program trains, and its samples are mixtures by shares of the right distribution
  weights      a program starts from every file that dptrain does

Needs numpy and torch; another Python may be named in $DPTRAIN_PYTHON. Exit code 77: they are missing.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SPEC = """
data:
  dataset: {synthetic_images: {samples: 90, test_samples: 20, shape: [1, 6, 6], classes: 3}}
  transforms: [to_tensor]
  sampler: weighted
  batch_size: 12
model: [flatten, {linear: 16}, relu, {linear: 3}]
loss: {cross_entropy: {weight: [1, 2, 1]}}
optimizer: {sgd: 0.1}
epochs: 3
log: {every: 1}
evaluate: true
"""
WEIGHTED = {
    "single": [],
    "an order that stays": ["data.reshuffle=false"],
    "reproducible shards": ["reproducible=4"],
    "two ranks": ["parallel=ddp", "devices=2", "cores=1", "loss={cross_entropy: {}}", "log.loss=global"],
}
PLAIN = ["data.sampler=null", "data.transforms=[to_tensor]", "loss=cross_entropy",
         "model=[{flatten: {start_dim: 2}}, {class_token: {}, name: class_token}, {position_embedding: {}, name: pos},"
         " flatten, {batch_norm1d: {momentum: 0}, name: norm}, {linear: 3, name: head}]"]
MIXED = ["data.transforms=[to_tensor, {mixup: 0.4}, {cutmix: {alpha: 1, p: 0.5}}]"]


class Programs:
    def __init__(self, dptrain, folder):
        self.dptrain, self.folder = dptrain, folder
        (folder / "t.yaml").write_text(SPEC)

    def try_run(self, *words):
        return subprocess.run([*map(str, words)], cwd=self.folder, text=True, capture_output=True)

    def run(self, *words):
        done = self.try_run(*words)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def export(self, *words):
        self.run(self.dptrain, "export", "t.yaml", "-o", "net.py", *words)

    def check_losses(self, name, words):
        self.run(self.dptrain, "t.yaml", f"out={name}", *words)
        self.export(*words)
        self.run(sys.executable, "net.py", "--losses", "torch.jsonl")
        print(self.run(self.dptrain, "compare", name, "torch.jsonl").splitlines()[-1])

    def program(self):
        spec = importlib.util.spec_from_file_location("net", self.folder / "net.py")
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        return program

    def check_weights(self):
        """The rules of docs/using-weights.md: a program starts from the weights that dptrain starts from."""
        import torch

        self.run(self.dptrain, "t.yaml", "out=first", "epochs=1", *PLAIN)
        self.run(self.dptrain, "export", "first", "-o", "w.pt")
        state = torch.load(self.folder / "w.pt", weights_only=True)
        floats = [key for key, value in state.items() if value.is_floating_point()]
        bare = {key.replace("token.weight", "token").replace("pos.weight", "pos"): v for key, v in state.items()}
        leading = {key: value[None] if key in ("class_token", "pos") else value for key, value in bare.items()}
        without_class = {key: value for key, value in leading.items() if key != "class_token"}
        fewer = {"norm.weight": state["norm.weight"][None, None], "pos.weight": state["pos.weight"][None]}
        whole = {
            "plain": state,
            "entry": {"model_state_dict": state, "epoch": 3},
            "halves": state | {key: state[key].half() for key in floats},
            "brain": state | {key: state[key].bfloat16() for key in floats},
            "doubles": state | {key: state[key].double() for key in floats},
            "uncounted": {key: state[key] for key in floats},
            "counts": state | {"norm.num_batches_tracked": torch.tensor(7, dtype=torch.int32)},
            "all-halves": {key: value.half() for key, value in state.items()},
            "ddp": {f"module.{key}": value for key, value in state.items()},
            "compiled": {f"_orig_mod.{key}": value for key, value in leading.items()},
            "fsdp": {f"module._fsdp_wrapped_module.{key}": value for key, value in state.items()},
            "lightning": {"state_dict": {f"model.{key}": value for key, value in state.items()}, "epoch": 3},
            "inside": {f"net.0._orig_mod.{key}": value for key, value in leading.items()},
            "bare": bare,
            "leading": leading,
            "imagenet": {"best_acc1": torch.ones(()), "state_dict": state, "optimizer": {"state": {}}},
            "ema": {"ema": torch.ones(3), "model": state},
            "expanded": state | {"norm.weight": torch.ones(1).expand(72)},
            "more": state | fewer,
        }
        part = {
            "part": without_class | {"other.weight": torch.ones(3)},
            "criterion": {f"model.{key}": value for key, value in state.items()} | {"loss.w": torch.ones(3)},
            "head": leading | {"head.weight": torch.ones(5, 74), "head.bias": torch.ones(5)},
            "integers": leading | {"pos": torch.ones(2, 36, dtype=torch.int32)},
        }
        self.export(*PLAIN)
        program = self.program()
        for name, held in (whole | part).items():
            torch.save(held, self.folder / f"{name}.pt")
            for partial in [True, False] if name in whole else [True]:
                file = f"initial_weights={{file: {name}.pt, partial: {str(partial).lower()}}}"
                self.run(self.dptrain, "t.yaml", f"out={name}{partial}", "optimizer.lr=0", "steps=1", *PLAIN, file)
                self.run(self.dptrain, "export", f"{name}{partial}", "-o", "same.pt")
                expected = torch.load(self.folder / "same.pt", weights_only=True)
                torch.manual_seed(program.SEED)
                model = program.make_model()
                program.load_weights(model, self.folder / f"{name}.pt", partial)
                for key, value in model.state_dict().items():
                    if not key.endswith("num_batches_tracked"):  # dptrain has done a step
                        assert torch.equal(value, expected[key]), (name, partial, key)
        for name in part:
            try:
                program.load_weights(program.make_model(), self.folder / f"{name}.pt")
            except ValueError as error:
                assert "not in the file: [" in str(error), error
            else:
                raise AssertionError(f"{name} is loaded whole")
        for name, words in {"one": [], "two-ranks": WEIGHTED["two ranks"]}.items():
            words = [*words, *PLAIN, "initial_weights={file: part.pt, partial: true}"]
            self.check_losses(f"part-{name}", words)
            said = self.try_run(sys.executable, "net.py").stderr
            expected = "part.pt: not in the file: ['class_token.weight']; other shape: []; unused: ['other.weight']"
            assert said.count(expected) == 1, said

    def check_mixed(self):
        import torch

        self.export(*MIXED)
        self.run(sys.executable, "net.py", "--losses", "torch.jsonl")
        losses = [json.loads(line)["loss"] for line in (self.folder / "torch.jsonl").read_text().splitlines()]
        assert len(losses) == 24 and sum(losses[-8:]) < sum(losses[:8]), losses
        program = self.program()
        data, weights = program.train_data()
        assert len(weights) == len(data) == 90
        per_class = torch.stack([y for _, y in data.data]).T.double() @ weights
        assert torch.allclose(per_class, torch.ones(3).double()), per_class
        state = torch.get_rng_state()
        mixed = 0
        for index in range(900):
            (x, y), (own, label) = data[index % 90], data.data[index % 90]
            assert abs(y.sum().item() - 1) < 1e-6 and y.min() >= 0 and x.shape == own.shape
            mixed += int(not torch.equal(x, own))
            assert torch.equal(y, label) or (y[label.argmax()] < 1 and not torch.equal(x, own))
        # A quarter stays as it is, and a few boxes are empty or of the same sample: within 6 deviations of 13.
        assert 675 - 78 - 60 < mixed < 675 + 78, mixed
        assert torch.equal(state, torch.get_rng_state())  # the order of samples stays dptrain's


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dptrain", required=True)
    dptrain = pathlib.Path(arguments.parse_args().dptrain).resolve()
    with tempfile.TemporaryDirectory() as name:
        programs = Programs(dptrain, pathlib.Path(name))
        for what, words in WEIGHTED.items():
            programs.check_losses(what.replace(" ", "-"), words)
        programs.check_mixed()
        programs.check_weights()


if __name__ == "__main__":
    if not all(importlib.util.find_spec(name) for name in ("numpy", "torch")):
        other = os.environ.get("DPTRAIN_PYTHON")
        if not other or os.environ.get("DPT_TRIED_PYTHON"):
            sys.exit(77)
        os.execve(other, [other, *sys.argv], os.environ | {"DPT_TRIED_PYTHON": "1"})
    main()
