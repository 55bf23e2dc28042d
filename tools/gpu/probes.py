"""The probes of probe.sh, and the models that they train. probe.py runs them; bundle.sh takes the CPUs' losses."""
import csv
import dataclasses
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Callable, Dict, List, Optional, Tuple

HERE = pathlib.Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))
GATE, PARALLEL, SERIAL, LAST = range(4)  # the stages

# Operators whose kernels share data between threads, where races may hide.
SHARED_MEMORY = ("attention,attention_gradient,linear,linear_relu,linear_relu_mask,matmul,matmul_relu_gradient,"
                 "linear_weight_gradient,linear_weight_bias_gradient")
CONFORMANCE = "-tc=kernels agree with the reference on a GPU*"
# Processes that pretend to be hosts share a GPU, which NCCL refuses on one host. NVIDIA does not support this, so a
# failure here proves little. A pass proves that NCCL is loaded, joins, sums and is captured.
TWO_RANKS = """
for k in 0 1; do
  NCCL_HOSTID=h$k DPTRAIN_NODE=$k RANK=$k WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 \\
    MASTER_PORT=$((20000 + $$ % 10000)) "$@" &
  ranks[k]=$!
done
wait "${ranks[0]}"; first=$?
wait "${ranks[1]}" && exit $first
"""


@dataclasses.dataclass
class Probe:
    """A process with a time limit. Its folder has logs/, runs/ and plans/; what it prints goes to logs/NAME."""
    name: str
    stage: int
    seconds: int
    command: List[str]
    environment: Dict[str, str] = dataclasses.field(default_factory=dict)
    needs: Tuple[str, ...] = ()  # probes whose results it reads: it runs if they passed
    facts: str = ""  # lines of the log that the report shows
    figures: Optional[Callable[[pathlib.Path, float], List[str]]] = None  # of the folder and the seconds: more lines
    cores: int = 1
    training: bool = False  # if it fails, it is tried again in safer ways
    skip: str = ""  # why it cannot run here


class Bundle:
    """The programs of an unpacked bundle and the libraries that they need."""

    def __init__(self, here=HERE):
        self.here = here
        programs = [here / "bin" / name for name in ("dptrain", "unit")]
        self.missing = [str(program) for program in programs if not os.access(program, os.X_OK)]
        before = os.environ.get("LD_LIBRARY_PATH")
        folders = [str(here / "lib")] + ([before] if before else [])
        # The bundle's libraries are for its own programs only.
        self.ours = ["env", "LD_LIBRARY_PATH=" + ":".join(folders)]
        # The compiler's libraries need a newer libc than the programs do: they are used if the machine's are older.
        if not self.missing and subprocess.call([*self.ours, str(programs[0]), "--version"], stdout=subprocess.DEVNULL,
                                                stderr=subprocess.DEVNULL) != 0:
            self.ours = ["env", "LD_LIBRARY_PATH=" + ":".join([str(here / "lib/gcc"), *folders])]
        self.dptrain = [*self.ours, str(here / "bin/dptrain")]
        self.unit = [*self.ours, str(here / "bin/unit")]
        self.packages = nvidia_packages()

    def sanitizer(self):
        """The path of compute-sanitizer; None: it is not there."""
        folders = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")), *self.packages]
        others = ":".join(f"{folder}/bin" for folder in folders)
        return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=others)


def nvidia_packages():
    """The folders of Python's nvidia packages."""
    spec = importlib.util.find_spec("nvidia")
    roots = spec.submodule_search_locations if spec else []
    return [folder for root in roots for folder in sorted(pathlib.Path(root).glob("*")) if (folder / "lib").is_dir()]


def models(configs, tiny):
    """Arguments of train by model. Data sets are made by a formula, so no files are needed."""
    images, painted = "samples: 12000, test_samples: 1000, ", "samples: 160, test_samples: 32, shape: [3, 112, 112]"
    text = "samples: 650, test_samples: 130, length: 64, "
    if tiny:
        images, painted = "samples: 400, test_samples: 50, ", "samples: 8, test_samples: 4, shape: [3, 16, 16]"
        text = "samples: 6, test_samples: 3, length: 8, "
    images = f"data.dataset={{synthetic_images: {{{images} classes: 10, shape: [1, 28, 28]}}}}"
    text = f"data.dataset={{synthetic_tokens: {{{text} vocabulary: 65, targets: next}}}}"
    out = {"mlp": [f"{configs}/fmnist_single.yaml", "optimizer.lr=0.001", "log.every=1", "epochs=1", images,
                   f"data.batch_size={50 if tiny else 100}"],
           "resnet18": [f"{configs}/large/resnet18.yaml", "log.every=1", "evaluate=true", "optimizer.lr=0.001",
                        f"data.dataset={{synthetic_images: {{{painted}}}}}"],
           "gpt": [f"{configs}/gpt_shakespeare.yaml", "optimizer.lr=0.0001", "log.every=1", "epochs=1", text],
           "resnet50": [f"{configs}/large/resnet50.yaml", "data.batch_size=128", "data.dataset={synthetic_images: "
                        "{samples: 384, test_samples: 64, classes: 1000, shape: [3, 224, 224]}}"],
           "gpt2": [f"{configs}/large/gpt2.yaml", "data.batch_size=16"]}
    if tiny:
        # Of so small images the second step's loss depends on every bit.
        out["resnet18"] += ["data.batch_size=4", "steps=1"]
        out["gpt"] += ["data.batch_size=4", "evaluate.batch_size=4"]
        out["resnet50"] = [f"{configs}/lenet.yaml", "data.batch_size=4", images]
        out["gpt2"] = out["gpt"]
    return out


def cpu_runs(configs, tiny):
    """The runs on CPUs whose losses a bundle carries."""
    model = models(configs, tiny)
    return {"mlp": model["mlp"], "mlp-ddp-2": [*model["mlp"], "parallel=ddp", "devices=2"],
            "resnet18": model["resnet18"], "gpt": model["gpt"]}


def bench_figures(name):
    def figures(folder, _seconds):
        row = next(csv.DictReader((folder / f"runs/bench-{name}/bench.csv").open()))
        step = float(row["ms_per_sample"]) * float(row["batch_size"]) * 1000
        return [f"dptrain {name:27} {step:10.1f} us a step {float(row['samples_per_second']):10.0f} samples/s"]
    return figures


def start_figures(name):
    def figures(folder, seconds):
        lines = (folder / "plans" / name).read_text(errors="replace").split("\n")
        plans = [line for line in lines if line.startswith("plan")]
        cached = sum(line.endswith(" from cache") for line in plans)
        return [f"two steps after {seconds:.1f} s; {len(plans)} plans, {cached} of them from the cache"]
    return figures


def conformance_figures(name):
    def figures(folder, _seconds):
        lines = (folder / "logs" / name).read_text(errors="replace").split("\n")
        wrong = [line for line in lines if line.startswith("conformance: [ ]")]
        right = sum(line.startswith("conformance: [x]") for line in lines)
        return [f"{right} results agree, {len(wrong)} do not", *wrong]
    return figures


class Table:
    """The probes, in the order in which each stage begins them."""

    def __init__(self, bundle, tiny):
        self.bundle, self.tiny = bundle, tiny
        self.model = models(bundle.here / "configs", tiny)
        self.cpu = bundle.here / ("cpu-tiny" if tiny else "cpu")
        self.all: List[Probe] = []
        self.gate()
        self.parallel()
        self.serial()
        self.last()

    def add(self, *args, **kwargs):
        self.all.append(Probe(*args, **kwargs))

    def train(self, name, stage, seconds, words, **kwargs):
        self.add(f"train-{name}", stage, seconds, [*self.bundle.dptrain, *words, "device=cuda", f"out=runs/{name}"],
                 training=True, **kwargs)

    def bits(self, one, two, stage):
        """Losses and weights of two runs are equal."""
        self.add(f"bits-{one}", stage, 30, [*self.bundle.dptrain, "compare", f"runs/{one}", f"runs/{two}",
                                            "--rtol", "0", "--atol", "0"], needs=(f"train-{one}", f"train-{two}"))

    def losses(self, name, cpu, tolerance, stage):
        """Losses are the CPUs' in the bundle. Sums in another order differ by 1e-7, and each step adds to it."""
        files = [f"runs/{name}/metrics.jsonl", str(self.cpu / f"{cpu}.jsonl")]
        self.add(f"losses-{name}", stage, 30, [*self.bundle.dptrain, "compare", *files, "--rtol", str(tolerance),
                                               "--atol", "1e-4"], needs=(f"train-{name}",))

    def ask(self, name, stage, seconds, case, **kwargs):
        """A test case of tests/backend/cuda/gpu_probes_test.cpp."""
        self.add(name, stage, seconds, [*self.bundle.unit, f"-tc={case}"], facts="^probe: ", **kwargs)

    def times(self, name, model, *more):
        rounds = ["--rounds", "1", "--seconds", "0.01"] if self.tiny else ["--rounds", "3"]
        self.add(f"bench-{name}", SERIAL, 40, [*self.bundle.dptrain, "bench", *self.model[model], *more, "device=cuda",
                                               "--modes", "single", *rounds, f"out=runs/bench-{name}"],
                 figures=bench_figures(name))

    def kernels(self, name, model, *more):
        self.ask(f"kernels-{name}", SERIAL, 40, "the time of every kernel of a step on a GPU",
                 environment={"DPT_TIME_SPEC": " ".join([*self.model[model], *more])})

    def torch(self, name, stage, seconds, row, *more, **kwargs):
        command = [sys.executable, str(self.bundle.here / "torch_gpu.py"), row, *more]
        if self.tiny:
            command += ["--device", "cpu", "--tiny", "--forms", "eager"]
        skip = "" if importlib.util.find_spec("torch") else "python3 has no torch"
        self.add(f"torch-{name}", stage, seconds, command,
                 facts=" us a step | failed: |first step", skip=skip, **kwargs)

    def gate(self):
        self.add("doctor", GATE, 25, [*self.bundle.dptrain, "doctor"], 
                 facts=r"^\[.\] (memory|cuda|cu|nv|NCCL|driver|gloo)")
        self.train("first", GATE, 25, [*self.model["mlp"], "steps=5", "evaluate=false", "graphs=false"])

    def parallel(self):
        self.add("machine", PARALLEL, 30, ["bash", "-c", """
            uname -srm; echo "cores: $(nproc)"; free -g | head -n 2; nvidia-smi -q -d CLOCK,POWER,ECC | head -n 80
            nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm,clocks.mem,power.limit,ecc.mode.current \\
              --format=csv,noheader
            for tool in nsys compute-sanitizer nvcc; do command -v $tool || echo "no $tool"; done
            python3 -c 'import torch; print("torch", torch.__version__, torch.backends.cudnn.version())' || true"""],
                 facts="^cores|^NVIDIA|^torch|MiB")
        # What takes longest begins first.
        some = max(1, CORES // 8)
        for row in ("gpt2-bf16", "resnet50-fp16", "mlp-fp32"):
            self.torch(f"compile-{row}", PARALLEL, 105, row, "--compile-only", cores=some)
        self.train("resnet50-cold", PARALLEL, 100, self.resnet50_start(), figures=start_figures("train-resnet50-cold"),
                   cores=some)
        # As many cores as conformance_test.cpp starts processes.
        self.add("conformance", PARALLEL, 105, [*self.bundle.unit, CONFORMANCE], {"DPTRAIN_PLAN_CACHE": "off"},
                 figures=conformance_figures("conformance"), cores=max(1, CORES * 5 // 8))
        self.ask("capture", PARALLEL, 40, "a captured step on a GPU*")
        self.ask("first-call-outside", PARALLEL, 40, "the first library call on a GPU is made outside*")
        self.ask("first-call-inside", PARALLEL, 40, "the first library call on a GPU is made inside*")
        self.ask("first-cudnn-call-inside", PARALLEL, 60, "the first call of cuDNN on a GPU*")
        self.train("mlp", PARALLEL, 40, self.model["mlp"])
        self.train("mlp-uncaptured", PARALLEL, 40, [*self.model["mlp"], "graphs=false"])
        self.train("mlp-again", PARALLEL, 40, self.model["mlp"])
        self.losses("mlp", "mlp", 1e-3, PARALLEL)
        self.bits("mlp-uncaptured", "mlp", PARALLEL)
        self.bits("mlp-again", "mlp", PARALLEL)
        # Halves are rounded to 8 or 11 bits; their losses are means over a batch, and nearer. With this scale no step
        # overflows: a skipped step makes the losses differ.
        for name, precision, tolerance in (("fp32", "fp32", 0.02), ("bf16", "bf16", 0.1 if self.tiny else 0.05),
                                           ("fp16", "{fp16: {init_scale: 128}}", 0.05)):
            self.train(f"resnet18-{name}", PARALLEL, 80, [*self.model["resnet18"], f"precision={precision}"])
            self.losses(f"resnet18-{name}", "resnet18", tolerance, PARALLEL)
        for name, tolerance in (("fp32", 1e-3), ("bf16", 0.05)):
            self.train(f"gpt-{name}", PARALLEL, 60, [*self.model["gpt"], f"precision={name}"])
            self.losses(f"gpt-{name}", "gpt", tolerance, PARALLEL)

    def resnet50_start(self):
        how = ["precision={fp16: {init_scale: 128}}", "log.every=1", "steps=2", "evaluate=false"]
        return [*self.model["resnet50"], *how]

    def serial(self):
        # The most important first, in case time runs out.
        self.ask("launch-gap", SERIAL, 20, "the time between two kernels on a GPU")
        self.ask("bandwidth", SERIAL, 20, "the memory bandwidth of a GPU")
        self.times("mlp-fp32", "mlp")
        self.times("resnet50-fp16", "resnet50", "precision=fp16")
        self.times("gpt2-bf16", "gpt2", "precision=bf16")
        for row in ("mlp-fp32", "resnet50-fp16", "gpt2-bf16"):
            self.torch(row, SERIAL, 45, row)
        self.kernels("mlp-fp32", "mlp")
        self.kernels("resnet50-fp16", "resnet50", "precision=fp16")
        self.kernels("gpt2-bf16", "gpt2", "precision=bf16")
        self.train("resnet50-cached", SERIAL, 40, self.resnet50_start(), figures=start_figures("train-resnet50-cached"),
                   needs=("train-resnet50-cold",))
        self.bits("resnet50-cached", "resnet50-cold", SERIAL)
        for precision in ("bf16", "tf32"):
            self.times(f"resnet50-{precision}", "resnet50", f"precision={precision}")
        for precision in ("bf16", "tf32"):
            self.kernels(f"resnet50-{precision}", "resnet50", f"precision={precision}")

    def last(self):
        bundle, mlp = self.bundle, self.model["mlp"]
        sanitizer = bundle.sanitizer()
        skip = "" if sanitizer else "compute-sanitizer is not there (PyPI: nvidia-cuda-sanitizer-api)"
        for tool in ("memcheck", "racecheck"):
            # An error of the program that it watches is its own exit code.
            words = [*bundle.ours, sanitizer or "compute-sanitizer", "--tool", tool, "--error-exitcode", "99"]
            short = [*mlp, "device=cuda", "steps=3", "evaluate=true", f"out=runs/{tool}"]
            self.add(f"{tool}-train", LAST, 80, [*words, str(bundle.here / "bin/dptrain"), *short], skip=skip)
            self.add(f"{tool}-operators", LAST, 80, [*words, str(bundle.here / "bin/unit"), CONFORMANCE],
                     {"DPT_CONFORMANCE_JOBS": "0", "DPT_OPERATORS": SHARED_MEMORY}, skip=skip)
        # Replicas and stages on one GPU, whose data the CPUs exchange.
        shared = "devices=[cuda:0, cuda:0]"
        for name, cpu, how in (("dp", "mlp", "dp"), ("ddp", "mlp-ddp-2", "{ddp: {backend: gloo}}"),
                               ("pipeline", "mlp", "{pipeline: {stages: 2, chunks: 2}}"),
                               ("pipeline-processes", "mlp", "{pipeline: {stages: 2, chunks: 2, processes: true}}")):
            self.train(name, LAST, 60, [*mlp, f"parallel={how}", shared])
            self.losses(name, cpu, 1e-3, LAST)
        gloo = bundle.here / "bin/libdptrain_gloo.so"
        self.add("train-nccl", LAST, 40, ["bash", "-c", TWO_RANKS, "ranks", *bundle.dptrain, *mlp, "device=cuda",
                                          "parallel=ddp", "out=runs/nccl"],
                 skip="" if gloo.exists() else "the bundle has no libdptrain_gloo.so", facts="NCCL")
        self.losses("nccl", "mlp-ddp-2", 1e-3, LAST)


def write_cpu_losses(bundle, tiny, folder):
    """The losses on this machine's CPUs, as folder/NAME.jsonl."""
    with tempfile.TemporaryDirectory() as name:
        for run, words in cpu_runs(bundle.here / "configs", tiny).items():
            done = subprocess.run([*bundle.dptrain, *words, "device=cpu", f"out={name}/{run}"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True)
            if done.returncode != 0:
                sys.exit(f"{run}: exit code {done.returncode}\n{done.stdout[-2000:]}")
            folder.mkdir(exist_ok=True)
            shutil.copy(f"{name}/{run}/metrics.jsonl", folder / f"{run}.jsonl")


if __name__ == "__main__":  # bundle.sh runs it in the bundle that it packs
    write_cpu_losses(Bundle(), False, HERE / "cpu")
    write_cpu_losses(Bundle(), True, HERE / "cpu-tiny")
