#!/usr/bin/env python3
"""Kills a rank of a run on two pretended hosts, under real launchers. Then the run goes on from its checkpoint.

usage: restarts.py LAUNCHER --dptrain PROGRAM
  torchrun   restarts the ranks itself (--max-restarts 1); found by $TORCHRUN or PATH
  mpirun     Open MPI's ends all ranks, and the run is started again

The end must have the bits of a run of one process. Exit code 77: skipped, there is no such launcher.
"""
import argparse, hashlib, os, pathlib, shutil, signal, socket, subprocess, sys, tempfile, time

SPEC = """
data:
  dataset: {synthetic_images: {samples: 960, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 48
model: [flatten, {linear: 24}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 200
parallel: ddp
cores: 1
save: {every_epochs: 0, every_steps: 500}
reproducible: {shards: 8, gradients: stored}
"""
RANKS = 2
LIMIT_S = 120


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Run:
    """A folder with the spec, the run directory `run`, and what launchers print."""

    def __init__(self, dptrain, folder):
        self.dptrain, self.folder = dptrain, folder
        self.spec = folder / "restarts.yaml"
        self.spec.write_text(SPEC)
        self.words = [dptrain, str(self.spec), f"out={folder}/run", "--resume", "auto"]
        self.log = folder / "log"
        self.port = free_port()
        self.environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(self.port), OMP_NUM_THREADS="1",
                                DPTRAIN_RESTARTS=str(folder))

    def start(self, command, **more):
        with self.log.open("a") as log:
            return subprocess.Popen(command, env=dict(self.environment, **more), stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT)

    def ranks(self):
        """The processes of the program, with their rank: {rank: pid}."""
        out = {}
        for process in pathlib.Path("/proc").iterdir():
            try:
                if process.name.isdigit() and os.readlink(process / "exe") == self.dptrain:
                    pairs = (v.split(b"=", 1) for v in (process / "environ").read_bytes().split(b"\0") if b"=" in v)
                    own = {name: value.decode(errors="replace") for name, value in pairs}
                    if own.get(b"DPTRAIN_RESTARTS") == str(self.folder):
                        out[int(own.get(b"RANK") or own[b"OMPI_COMM_WORLD_RANK"])] = int(process.name)
            except OSError:  # it has ended
                pass
        return out

    def kill_rank_1(self):
        """Once there are checkpoints to go on from."""
        deadline = time.monotonic() + LIMIT_S
        while not list(self.folder.glob("run/checkpoints/*/")) or 1 not in (ranks := self.ranks()):
            if time.monotonic() > deadline:
                self.fail("there is no checkpoint")
            time.sleep(0.02)
        os.kill(ranks[1], signal.SIGKILL)

    def wait(self, processes):
        deadline = time.monotonic() + LIMIT_S
        return [p.wait(max(0.1, deadline - time.monotonic())) for p in processes]

    def fail(self, what):
        for pid in self.ranks().values():
            os.kill(pid, signal.SIGKILL)
        sys.exit(f"failed: {what}\n{self.log.read_text()[-4000:]}")

    def check(self, codes):
        said = self.log.read_text()
        if codes != [0] * len(codes):
            self.fail(f"the launchers ended with {codes}")
        if "resuming from " not in said:
            self.fail("the run did not go on from a checkpoint")
        if self.ranks():
            self.fail("ranks are left behind")
        alone = subprocess.run([self.dptrain, str(self.spec), "devices=1", f"out={self.folder}/alone"],
                               capture_output=True, text=True, check=False)
        if alone.returncode != 0:
            self.fail(alone.stderr)
        sums = [hashlib.sha256((self.folder / run / "model.safetensors").read_bytes()).hexdigest()
                for run in ("run", "alone")]
        if sums[0] != sums[1]:
            self.fail("other weights than those of one process")


def by_torchrun(run):
    program = os.environ.get("TORCHRUN") or shutil.which("torchrun")
    if not program:
        skip("no torchrun; set TORCHRUN to its path")
    agents = [run.start([program, "--nnodes", str(RANKS), "--node_rank", str(host), "--nproc_per_node", "1",
                         "--max-restarts", "1", "--monitor-interval", "0.1", "--master_addr", "127.0.0.1",
                         "--master_port", str(run.port), "--no-python", *run.words], DPTRAIN_NODE=str(host))
              for host in range(RANKS)]
    run.kill_rank_1()
    run.check(run.wait(agents))
    said = run.log.read_text()
    if " ended unexpectedly at epoch " not in said:
        run.fail("host 0 did not say what happened")


def by_mpirun(run):
    program = shutil.which("mpirun")
    if not program or "Open MPI" not in subprocess.run([program, "--version"], capture_output=True, text=True,
                                                       check=False).stdout:
        skip("no mpirun of Open MPI; install openmpi-bin")
    # Open MPI says that all ranks are on one host, which they are.
    pretend = ('export DPTRAIN_NODE=$OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1; '
               'exec "$@"')
    command = [program, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(RANKS), "sh", "-c",
               pretend, "sh", *run.words]
    first = run.start(command)
    run.kill_rank_1()
    if run.wait([first]) == [0]:
        run.fail("mpirun did not notice that a rank was killed")
    run.check(run.wait([run.start(command)]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("launcher", choices=("torchrun", "mpirun"))
    parser.add_argument("--dptrain", required=True)
    given = parser.parse_args()
    dptrain = os.path.realpath(given.dptrain)
    with tempfile.TemporaryDirectory(prefix="dptrain-restarts-") as folder:
        {"torchrun": by_torchrun, "mpirun": by_mpirun}[given.launcher](Run(dptrain, pathlib.Path(folder)))
    print(f"{given.launcher}: a killed rank, and the bits of a run that nothing disturbed")


if __name__ == "__main__":
    main()
