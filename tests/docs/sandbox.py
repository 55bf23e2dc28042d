"""The folder in which commands of the pages are run, and small stand-ins for Fashion-MNIST."""
import gzip, os, pathlib, random, shutil, site, struct

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULL = os.environ.get("DPT_DOCS_FULL") == "1"


def idx(path, shape, data):
    with gzip.open(path, "wb", compresslevel=1) as f:
        f.write(struct.pack(">HBB", 0, 8, len(shape)) + b"".join(struct.pack(">I", n) for n in shape) + data)


def write_stand_ins(folder):
    """3,000 training and 500 test images in the four files of Fashion-MNIST: class k has bright rows from 2 k on."""
    numbers = random.Random(1)
    images = [bytes(220 if 2 * k <= row < 2 * k + 4 else 30 for row in range(28) for _ in range(28)) for k in range(10)]
    folder.mkdir(parents=True)
    for name, count in ("train", 3000), ("t10k", 500):
        labels = bytes(numbers.randrange(10) for _ in range(count))
        idx(folder / f"{name}-images-idx3-ubyte.gz", (count, 28, 28), b"".join(images[k] for k in labels))
        idx(folder / f"{name}-labels-idx1-ubyte.gz", (count,), labels)


def sandbox(folder, dptrain):
    """Fills the folder and returns the environment of its commands: HOME is the folder, so they write nowhere else."""
    for name in ("configs", "docs", "schema", "tools", "tests/fixtures/0.1.0"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "tests/docs/my.yaml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    # Not the whole folder: a command such as `ninja -C build` would change it.
    for name in ("src/dptrain", "tests/unit"):
        (folder / "build" / name).parent.mkdir(parents=True)
        (folder / "build" / name).symlink_to(pathlib.Path(dptrain).parents[1] / name)
    (folder / "tools/fetch_data.sh").write_text("#!/bin/sh\necho 'nothing is downloaded in this test'\n")
    (folder / "bin").mkdir()
    (folder / "bin/dptrain").symlink_to(dptrain)
    launchers = ("SLURM", "PMI", "OMPI", "RANK", "WORLD_SIZE")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(launchers)}
    environment |= {"PATH": f"{folder}/bin:{environment['PATH']}",
                    "HOME": str(folder), "PYTHONUSERBASE": site.getuserbase(),
                    # For mpirun in a container, where this test is root's.
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    # Runs of others on this machine, which may take all cores, are not seen there.
    (folder / ".run").mkdir(mode=0o700)
    environment["XDG_RUNTIME_DIR"] = str(folder / ".run")
    data = environment.pop("DPTRAIN_DATA", "")
    if FULL:
        (folder / "datasets").mkdir()
        for path in pathlib.Path(data).absolute().iterdir():
            (folder / "datasets" / path.name.replace("-", "_")).symlink_to(path)
    else:
        write_stand_ins(folder / "datasets/fashion_mnist")
    return environment


def protect_machine(folder):
    """Commands that change more than the folder fail here; a page has to say which test runs them."""
    for name in ("tools/setup.sh", "tools/two_hosts.sh", "bin/apt-get", "bin/docker", "bin/ip", "bin/pip", "bin/sudo"):
        (folder / name).write_text("#!/bin/sh\necho 'it changes the machine: a test of its own must run it'\nexit 1\n")
        (folder / name).chmod(0o755)
