"""The rows of compare.py: a spec for dptrain and the peers that do the same."""

import array
import json
import pathlib
import random
import struct
from dataclasses import dataclass, field

import random_nets
from nets import NETS

# The tutorial's network and its data; JSON is YAML as well, so this is a spec once dumped.
TUTORIAL = {
    "version": 1,
    "seed": 0,
    "data": {
        "dataset": "fashion_mnist",
        "transforms": ["to_tensor", {"divide": 255}],
        "shuffle": True,
    },
    "model": [
        "flatten",
        {"linear": 200},
        "sigmoid",
        {"linear": 200},
        "log_softmax",
        {"linear": 10},
    ],
    "loss": "cross_entropy",
    "optimizer": {"adam": 0.01},
    "device": "cpu",
}

LINEAR_SAMPLES = 64_000
LINEAR_BATCH = 32

DEEP_SAMPLES = 4096
DEEP_LAYERS = 16
DEEP_OUTPUTS = 10
DEEP_RATE = 0.1

RESNET = pathlib.Path(__file__).resolve().parents[2] / "configs/large/resnet50.yaml"
RESNET_BATCH = 16
RESNET_STEPS = 3  # of an epoch


@dataclass
class Peer:
    name: str
    script: str
    arguments: list = field(default_factory=list)
    module: str = "torch"  # skipped where this can't be imported
    threads: bool = False  # takes --threads
    epochs: int = 0  # 0: as many as dptrain runs
    exported: bool = False  # takes --program, which dptrain exports


@dataclass
class Row:
    name: str
    about: str
    spec: dict
    peers: list
    epochs: int = 4
    cold: bool = False  # wall time of the whole process instead of the seconds of an epoch
    steps: int = 0  # of an epoch, where a time for each step says more
    samples: int = 0  # of an epoch, where a share of the peak is asked for
    rate: bool = False  # samples a second say more than seconds
    alone: str = ""  # a pipeline of two stages: the row of the same net on one core
    bound: float = 0  # of its efficiency: what the bubble leaves
    same_data: bool = True  # losses must agree
    random: bool = False

    def fields(self):
        """All but what it runs, for JSON."""
        return {key: value for key, value in vars(self).items() if key not in ("spec", "peers")}


def tutorial(name, data, **more):
    return {**TUTORIAL, "name": name, "data": {**TUTORIAL["data"], **data}, **more}


def write_npy(path, values, columns):
    """[n, columns] of float32."""
    shape = f"({len(values) // columns}, {columns})"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    path.write_bytes(raw + values.tobytes())
    return path


def linear_files(folder):
    """inputs.npy and targets.npy of a noisy linear map, the same on every machine."""
    draw = random.Random(0)
    truth = [[draw.uniform(-1, 1) for _ in range(10)] for _ in range(10)]
    inputs, targets = array.array("f"), array.array("f")
    for _ in range(LINEAR_SAMPLES):
        x = [draw.uniform(-1, 1) for _ in range(10)]
        inputs.extend(x)
        targets.extend(sum(a * b for a, b in zip(x, row)) + draw.gauss(0, 0.1) for row in truth)
    folder = pathlib.Path(folder)
    return write_npy(folder / "inputs.npy", inputs, 10), write_npy(folder / "targets.npy", targets, 10)


def deep_files(folder, width):
    """Random inputs without zeros and targets for the deep MLP, the same on every machine."""
    draw = random.Random(0)
    folder = pathlib.Path(folder)
    paths = []
    for name, columns in [(f"inputs_{width}", width), (f"targets_{width}", DEEP_OUTPUTS)]:
        raw = draw.randbytes(DEEP_SAMPLES * columns)
        values = array.array("f", [(2 * each - 255) / 255 for each in raw])
        paths.append(write_npy(folder / f"{name}.npy", values, columns))
    return paths


def pipelines(folder, net, width, batch):
    """A deep MLP in two stages on two cores, and on one core alone."""
    inputs, targets = map(str, deep_files(folder, width))
    spec = {
        "version": 1,
        "seed": 0,
        "data": {
            "dataset": {"npy": {"inputs": inputs, "targets": targets}},
            "batch_size": batch,
            "shuffle": False,
        },
        "model": [*[layer for _ in range(DEEP_LAYERS) for layer in ({"linear": width}, "relu")],
                  {"linear": DEEP_OUTPUTS}],
        "loss": "mse_loss",
        "optimizer": {"sgd": {"lr": DEEP_RATE}},
        "device": "cpu",
        "cores": 1,
    }
    given = ["--inputs", inputs, "--targets", targets, "--depth", str(DEEP_LAYERS),
             "--batch", str(batch), "--lr", str(DEEP_RATE)]
    about = f"{DEEP_LAYERS} layers of {width}, batch {batch}"
    out = [Row(f"{net}_single", f"{about}, on one core", {**spec, "name": f"bench_{net}"}, [],
               epochs=3, samples=DEEP_SAMPLES, rate=True)]
    for chunks in [4, 8]:
        for schedule in ["gpipe", "1f1b"]:
            keys = {"stages": 2, "chunks": chunks, "schedule": schedule}
            name = f"{net}_{schedule}_{chunks}"
            peer = Peer("torch.distributed.pipelining on gloo", "torch_pipeline.py",
                        [*given, "--chunks", str(chunks), "--schedule", schedule])
            out.append(Row(name, f"the same in two stages, {chunks} chunks, {schedule}",
                           {**spec, "name": f"bench_{name}", "parallel": {"pipeline": keys}}, [peer],
                           epochs=3, samples=DEEP_SAMPLES, rate=True, alone=f"{net}_single",
                           bound=chunks / (chunks + 1)))
    return out


def resnet(name, precision, flags):
    """ResNet-50 on both cores as one device; its images are painted, the peers' random."""
    spec = {
        "extends": str(RESNET),
        "name": f"bench_{name}",
        "data": {"batch_size": RESNET_BATCH, "limit": RESNET_BATCH * RESNET_STEPS},
        "precision": precision,
        "device": "cpu",
        "parallel": "single",
    }
    peers = [
        Peer(f"PyTorch, {', '.join(each) or 'contiguous'}", "torch_resnet.py",
             [f"--{flag}" for flag in [*each, *flags]], module="torchvision", threads=True)
        for each in [[], ["channels-last"], ["channels-last", "compile"]]
    ]
    about = f"ResNet-50, batch {RESNET_BATCH}, {precision}"
    samples = RESNET_BATCH * RESNET_STEPS
    return Row(name, about, spec, peers, epochs=3, samples=samples, rate=True,
               same_data=False)


def exported(convolutions):
    """PyTorch's ways to run the program that dptrain exports."""
    def way(*flags):
        words = {"compile": "compiled", "channels-last": "channels last"}
        about = ", ".join(words[each] for each in flags) or "eager"
        return Peer(f"PyTorch, {about}", "torch_exported.py", [f"--{each}" for each in flags],
                    threads=True, exported=True)

    last = [way("channels-last"), way("channels-last", "compile")] if convolutions else []
    return [way(), way("compile"), *last]


def nets():
    """Each of NETS in both precisions."""
    out = []
    for name, (about, spec, steps, convolutions) in NETS.items():
        batch = spec["data"]["batch_size"]
        data = {**spec["data"], "limit": steps * batch}
        for precision in ["fp32", "bf16"]:
            full = name if precision == "fp32" else f"{name}_{precision}"
            more = {"name": f"bench_{full}", "precision": precision, "parallel": "single",
                    "device": "cpu", "data": data}
            out.append(Row(full, f"{about}, {precision}", {**spec, **more}, exported(convolutions),
                           epochs=3, steps=steps, samples=steps * batch))
    return out


def random_rows(count, seed):
    """Nets drawn at random; PyTorch eager and compiled."""
    for index, (about, spec, steps) in enumerate(random_nets.specs(count, seed)):
        yield Row(f"random_{index}", about, {**spec, "name": f"random_{index}"}, exported(False),
                  epochs=3, steps=steps, samples=steps * spec["data"]["batch_size"], random=True)


def rows(folder):
    inputs, targets = linear_files(folder)
    single = tutorial("bench_single", {"batch_size": 100}, parallel="single")
    ddp = tutorial(
        "bench_ddp",
        {"batch_size_per_replica": 100, "reshuffle": False},
        parallel="ddp",
        devices=2,
        log={"loss": "rank0"},
    )
    linear = {
        "version": 1,
        "name": "bench_linear",
        "seed": 0,
        "data": {
            "dataset": {"npy": {"inputs": str(inputs), "targets": str(targets)}},
            "batch_size": LINEAR_BATCH,
            "shuffle": False,
        },
        "model": [{"linear": 10}],
        "loss": "mse_loss",
        "optimizer": {"sgd": {"lr": 0.001}},
        "device": "cpu",
        "cores": 1,
        "parallel": "single",
    }
    given = ["--inputs", str(inputs), "--targets", str(targets)]
    memory = Peer("PyTorch, in memory", "torch_memory.py", threads=True)
    compiled = Peer("PyTorch, compiled", "torch_memory.py", ["--compile"], threads=True)
    scan = Peer("JAX, epoch jitted", "jax_scan.py", module="jax")
    loop = Peer("PyTorch, the tutorial's loop", "torch_loop.py", threads=True, epochs=2)
    on_gloo = ["--json", "--ranks", "2", "--form"]
    script = "torch_ddp_tutorial.py"
    ddp_peers = [
        Peer("PyTorch DDP on gloo, in memory", script, [*on_gloo, "memory"]),
        Peer("PyTorch DDP, the tutorial's loop", script, [*on_gloo, "loop"], epochs=2),
    ]
    return [
        Row("single", "MLP 784-200-200-10, Adam, batch 100, fp32", single,
            [memory, compiled, scan, loop], samples=60_000),
        Row(
            "single_bf16",
            "MLP 784-200-200-10, Adam, batch 100, bf16",
            {**single, "name": "bench_bf16", "precision": "bf16"},
            [Peer("PyTorch, in memory", "torch_memory.py", ["--autocast"], threads=True),
             Peer("PyTorch, compiled", "torch_memory.py", ["--autocast", "--compile"],
                  threads=True)],
            samples=60_000,
            same_data=False,  # PyTorch rounds more in log_softmax
        ),
        *nets(),
        *pipelines(folder, "pipeline", 512, 512),
        *pipelines(folder, "middle_pipeline", 128, 512),
        *pipelines(folder, "narrow_pipeline", 128, 128),
        resnet("resnet", "fp32", []),
        resnet("resnet_bf16", "bf16", ["autocast"]),
        Row("ddp", "MLP 784-200-200-10 on two ranks, batch 100 each, fp32", ddp, ddp_peers,
            samples=60_000),
        Row(
            "linear",
            "Linear(10, 10), MSE, SGD, batch 32",
            linear,
            [Peer("PyTorch, in memory", "torch_linear.py", given)],
            steps=LINEAR_SAMPLES // LINEAR_BATCH,
        ),
        Row(
            "cold",
            "MLP 784-200-200-10, one epoch, from process start to exit",
            single,
            [memory, scan, loop],
            epochs=1,
            cold=True,
        ),
    ]


def write_spec(row, folder):
    path = pathlib.Path(folder) / f"{row.name}.yaml"
    path.write_text(json.dumps(row.spec, indent=1) + "\n")
    return path
