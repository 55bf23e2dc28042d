"""What a measurement was made on, from /proc/cpuinfo and the operating system."""

import os
import platform
import statistics
import time

ISA = [
    "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
    "asimd", "sve",
]  # fmt: skip


def describe(cores):
    """Model, cores used of those there, the instruction sets that matter, load, system."""
    fields = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                fields.setdefault(key.strip(), value.strip())
    except OSError:
        pass  # not Linux: the table says unknown
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    return {
        "model": fields.get("model name", platform.machine() or "unknown"),
        "family": "/".join(fields.get(key, "?") for key in ("cpu family", "model", "stepping")),
        "cores": len(cores),
        "cores_there": os.cpu_count(),
        "isa": [each for each in ISA if each in flags],
        "load": round(os.getloadavg()[0], 2),
        "virtual": "hypervisor" in flags,
        "system": platform.platform(terse=True),
    }


def disturbance():
    """A fixed piece of work, 50 times: the mean over the quickest. A quiet machine: below 1.1."""
    times = []
    for _ in range(50):
        start = time.perf_counter()
        sum(range(50_000))
        times.append(time.perf_counter() - start)
    return statistics.fmean(times) / min(times)
