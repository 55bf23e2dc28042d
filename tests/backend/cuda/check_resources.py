"""Reads what ptxas said of own kernels, NAME.ptxas..., and fails where one needs more of a GPU than it should: two
blocks of 256 threads must fit into the registers of a multiprocessor, local memory may hold the few registers that are
saved around a call (a division in double is one), and each kernel must be there for each kind of GPU."""
import collections, pathlib, re, sys

MOST_REGISTERS = 65536 // (2 * 256)
MOST_SHARED = 48 * 1024
MOST_LOCAL = 80  # pools of volumes save the ranges of three extents around divisions of 64 bits
bad, most_registers, most_shared = [], 0, 0
for path in map(pathlib.Path, sys.argv[1:]):
    archs = collections.defaultdict(set)
    name = None
    for line in path.read_text().splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line):
            name = f'{entry[1]} for {entry[2]}'
            archs[entry[2]].add(entry[1])
        elif (stack := re.search(r'(\d+) bytes stack frame', line)) and int(stack[1]) > MOST_LOCAL:
            bad.append(f'{name}: {stack[1]} bytes of local memory, at most {MOST_LOCAL} are wanted')
        elif used := re.search(r'Used (\d+) registers', line):
            shared = re.search(r'(\d+) bytes smem', line)
            registers, shared = int(used[1]), int(shared[1]) if shared else 0
            most_registers, most_shared = max(most_registers, registers), max(most_shared, shared)
            if registers > MOST_REGISTERS:
                bad.append(f'{name}: {registers} registers, at most {MOST_REGISTERS} are wanted')
            if shared > MOST_SHARED:
                bad.append(f'{name}: {shared} bytes of shared memory, at most {MOST_SHARED} are wanted')
    kernels = set().union(*archs.values())
    if not kernels:
        bad.append(f'{path}: no kernel')
    bad += [f'{k} is missing for {arch}' for arch, there in archs.items() for k in kernels - there]
print('\n'.join(bad) or f'at most {most_registers} registers, {most_shared} bytes of shared memory')
sys.exit(bool(bad))
