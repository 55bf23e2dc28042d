"""Compares the memory that `dptrain plan` foretells with what runs of shipped specs take at their peak.

memory.py DPTRAIN CONFIGS. Without Fashion-MNIST at hand a made-up set of its size stands in for it.
"""
import json, os, re, subprocess, sys, tempfile

# What is foretold is the size of every buffer, to the byte, and what the process occupies before its first
# step, with a worker's kernels prepared. Not foretold, but measured once and rounded: pages of code that only a
# step touches, stacks, heaps of threads. They are about 1 MiB, most of what may be wrong of the 10 MiB of the
# smallest spec. 5 % is the goal; measured: within 2 %.
TOLERANCE = 0.05
# On a machine that other programs use, heaps and stacks of threads sometimes grow further: a wrong prediction is
# wrong each time.
TRIES = 3
SPECS = ['fmnist_single', 'fmnist_dp', 'fmnist_ddp', 'mlp_rmsprop', 'embedding_dp', 'ddp_toy', 'lenet', 'vgg',
         'large/resnet18 data.batch_size=4']
MIB = 2 ** 20


def run(*words):
    return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


def compare(spec, folder):
    spec, *overrides = spec.split()
    path = os.path.join(configs, spec + '.yaml')
    text = open(path).read()
    mode = re.search(r'^parallel: *(\w+)', text, re.M)
    mode = mode[1] if mode else 'single'
    row = json.loads(run('bench', path, '--json', '--modes', mode, '--rounds', '1', '--seconds', '0.2',
                         'out=' + folder, *overrides))['rows'][0]
    wrong = row['memory_predicted_bytes'] / row['memory_peak_bytes'] - 1
    words = ['evaluate=false', f'parallel={mode}', f'devices={row["devices"]}',
             f'cores={row["workers"] // row["devices"]}']
    made_up = row['data'].startswith('synthetic_') and 'synthetic_' not in text
    if made_up:
        words.append('data.dataset=synthetic_images')
    plan = float(re.search(r'^peak: ([0-9.]+) MiB', run('plan', path, *words, *overrides), re.M)[1]) * MIB
    apart = plan / row['memory_predicted_bytes'] - 1
    print(f'{spec:<14} predicted {row["memory_predicted_bytes"] / MIB:6.1f} MiB, peak '
          f'{row["memory_peak_bytes"] / MIB:6.1f}, {100 * wrong:+.1f} %; plan {100 * apart:+.1f} % of predicted')
    return abs(wrong) <= TOLERANCE and abs(apart) <= TOLERANCE


program, configs = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    failed = [s for s in SPECS if not any(compare(s, folder) for _ in range(TRIES))]
sys.exit(f'further than {100 * TOLERANCE:.0f} % from the peak: {", ".join(failed)}' if failed else 0)
