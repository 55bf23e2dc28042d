#!/usr/bin/env python3
"""Mutation tests: changes one expression or statement of a source file at a time and runs the tests that reach it.

All mutants are compiled into one copy of the tree, each behind `mutant_on(number)`, so one build serves all:

  make DIR             copies the tree to DIR/tree and inserts mutants into the folders that insert.py names
  check DIR            drops the mutants that do not compile; needs headers that `meson setup` generates
  (build src/dptrain, tests/unit and the fake modules in DIR/tree/build-test/gcc)
  reach DIR            runs tests/unit once: which cases reach which mutants, and how long they take
  run DIR [--count N]  runs N mutants in a random order with a fixed seed; appends to DIR/results.jsonl
  report DIR           prints the table of results, and every survivor

Nothing is written outside DIR.
"""
import argparse, collections, ctypes, json, os, pathlib, random, re, shutil, signal, subprocess, time

from insert import check, make

SEED = 22


def descendants():
    """Processes under this one; those whose parents ended are ours as well (PR_SET_CHILD_SUBREAPER)."""
    children = collections.defaultdict(list)
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text().rpartition(')')[2].split()
            children[int(fields[1])].append(int(stat.parent.name))
        except OSError:
            pass
    out, todo = [], [os.getpid()]
    while todo:
        below = children[todo.pop()]
        out += below
        todo += below
    return out


def run_unit(where, arguments, limit, **environment):
    """(exit code or 'timeout', output). Leaves no process and no file behind."""
    build, scratch = where / 'tree/build-test/gcc', where / f'tmp{os.getpid()}'
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / 'x').mkdir(parents=True)
    (scratch / 'x').chmod(0o700)
    env = {**os.environ, 'TMPDIR': str(scratch), 'XDG_RUNTIME_DIR': str(scratch / 'x'),
           **{k: str(v) for k, v in environment.items()}}
    log = scratch / 'output'
    with open(log, 'w') as out:
        child = subprocess.Popen([build / 'tests/unit', *arguments], env=env, cwd=build, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            code = 'timeout'
    for _ in range(50):
        left = descendants()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            break
        time.sleep(0.05)
    text = log.read_bytes().decode(errors='replace') if log.exists() else ''
    shutil.rmtree(scratch, ignore_errors=True)
    return code, text


def reach(where, options):
    count = 1 + max(m['id'] for m in json.loads((where / 'mutants.json').read_text()))
    reached = where / 'reached.bin'
    for part in options.files:
        reached.write_bytes(bytes(count + 4096))
        code, out = run_unit(where, ['-sf=' + part, '-sfe=' + options.without], 3600,
                             DPT_MUTANTS_REACHED=reached, DPT_MUTANTS_LOG=where / 'reach.txt')
        print(part, code, out[-200:], flush=True)


class Cases:
    def __init__(self, where, skipped):
        self.cost, self.file, self.reaching = {}, {}, collections.defaultdict(set)
        for line in (where / 'reach.txt').read_text().splitlines():
            file, seconds, passed, numbers, name = line.split('\t')
            if passed != '1' or name in skipped:
                continue
            self.cost[name] = min(float(seconds), self.cost.get(name, 1e9))
            self.file[name] = file
            for n in numbers.split():
                self.reaching[int(n)].add(name)

    def batches(self, mutant):
        """Names of cases and their seconds: the folder's own first, then all others, each from the fastest on."""
        own = f"tests/{mutant['file'].split('/')[1]}/"
        names = sorted(self.reaching[mutant['id']], key=lambda n: (own not in self.file[n], self.cost[n]))
        limit = 3
        while names:
            now = [names.pop(0)]
            while names and sum(map(self.cost.get, now)) + self.cost[names[0]] < limit and len(now) < 300:
                now.append(names.pop(0))
            yield now, sum(map(self.cost.get, now))
            limit = min(30, 2 * limit)


def only(names):
    return '-tc=' + ','.join(re.sub(r'[\\,"]', '?', name) for name in names)


def judge(where, cases, mutant, most):
    """(verdict, why). A case that fails must fail alone as well: a busy machine may fail timed ones."""
    spent = 0
    for names, seconds in cases.batches(mutant):
        if spent + seconds > most:
            return 'survived', f'{spent:.0f} s of tests, others not run'
        spent += seconds
        while names:
            code, out = run_unit(where, ['--abort-after=1', only(names)], 45 + 8 * seconds, DPT_MUTANT=mutant['id'])
            if code == 0:
                break
            if code == 'timeout':
                return 'timeout', names[0] if len(names) == 1 else f'one of {len(names)} cases, first {names[0]}'
            failed = re.findall(r'^TEST CASE:\s+(.*)$', out, re.M)
            if not failed or failed[-1] not in names:
                return 'killed', f'code {code}'
            code, _ = run_unit(where, [only(failed[-1:])], 45 + 8 * cases.cost[failed[-1]], DPT_MUTANT=mutant['id'])
            if code != 0:
                return 'killed' if code != 'timeout' else 'timeout', failed[-1]
            names = [n for n in names if n != failed[-1]]
    return 'survived', f'{spent:.0f} s of tests'


def run(where, options):
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    mutants = json.loads((where / 'mutants.json').read_text())
    cases = Cases(where, options.skip.read_text().splitlines() if options.skip else [])
    results = where / 'results.jsonl'
    part, parts = map(int, options.part.split('/'))
    if options.only:
        chosen = [m for m in mutants if str(m['id']) in options.only.split(',')]
    else:
        done = {json.loads(r)['id'] for r in results.read_text().splitlines()} if results.exists() else set()
        chosen = random.Random(SEED).sample(mutants, len(mutants))[:options.count]
        chosen = [m for m in chosen[part::parts] if m['id'] not in done]
    for m in chosen:
        start = time.time()
        if cases.reaching[m['id']]:
            verdict, why = judge(where, cases, m, options.seconds)
        else:
            verdict, why = 'unreached', ''
        with open(results, 'a') as out:
            out.write(json.dumps({**m, 'verdict': verdict, 'why': why, 'seconds': time.time() - start}) + '\n')
        print(m['id'], f"{m['file']}:{m['line']}", m['kind'], verdict, why, f'{time.time() - start:.0f} s', flush=True)


def report(where, _):
    last = {}
    for r in (where / 'results.jsonl').read_text().splitlines():
        last[json.loads(r)['id']] = json.loads(r)
    table = collections.Counter((r['file'].rpartition('/')[0], r['verdict']) for r in last.values())
    for (folder, verdict), n in sorted(table.items()):
        print(f'{folder:20} {verdict:10} {n}')
    for r in last.values():
        if r['verdict'] not in ('killed',):
            print(f"\n{r['id']} {r['file']}:{r['line']} {r['kind']}: {r['verdict']} {r['why']}\n"
                  f"  - {r['before']}\n  + {r['after']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('command', choices=['make', 'check', 'reach', 'run', 'report'])
    parser.add_argument('dir', type=pathlib.Path)
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--only', default='', help='run: numbers of mutants, with commas')
    parser.add_argument('--part', default='0/1', help='run: 1/3 is the second of three processes')
    parser.add_argument('--skip', type=pathlib.Path, help='run: a file with the names of cases that are left out')
    parser.add_argument('--seconds', type=float, default=300, help='run: of tests for one mutant, at most')
    parser.add_argument('--files', nargs='*', default=['*'], help='reach: patterns of test files')
    parser.add_argument('--without', default='*/oracles/*', help='reach: a pattern of test files that are not run')
    options = parser.parse_args()
    globals()[options.command](options.dir.resolve(), options)


main()
