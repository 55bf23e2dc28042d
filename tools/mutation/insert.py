"""Inserts mutants into a copy of the tree, each behind mutant_on(number), and drops those that do not compile."""
import json, pathlib, re, shutil, subprocess, sys

from source import Source

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ['src/parallel', 'src/comm', 'src/checkpoint']

CONTROL = r'''#pragma once
#include <cstdlib>
#include <type_traits>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

// With --coverage and -Wl,--wrap=_exit, what ends by _exit is counted, too.
extern "C" __attribute__((weak)) void __gcov_dump();
extern "C" __attribute__((weak)) void __real__exit(int);
extern "C" __attribute__((weak)) void __wrap__exit(int code) {
  if (__gcov_dump) __gcov_dump();
  __real__exit(code);
}

struct MutantControl {
  int chosen = -1;
  unsigned char* reached = nullptr;
  MutantControl() {
    if (const char* n = std::getenv("DPT_MUTANT")) chosen = std::atoi(n);
    const char* file = std::getenv("DPT_MUTANTS_REACHED");
    const int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void* at = mmap(nullptr, MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) reached = static_cast<unsigned char*>(at);
    close(fd);
  }
};
inline MutantControl& mutant_control() { static MutantControl control; return control; }
inline bool mutant_on(int n) noexcept {
  const MutantControl& control = mutant_control();
  if (control.reached) control.reached[n] = 1;
  return n == control.chosen;
}
inline const char* mutant_value(const char*) { return "mutated"; }
template <class T> auto mutant_value(const T& v) {
  if constexpr (std::is_same_v<T, bool>) return !v;
  else if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(v + 1);
  else { static_assert(std::is_default_constructible_v<T>); return T{}; }
}
'''
LISTENER = r'''
#include <chrono>
#include <cstdio>
#include "mutant_control.h"
// Appends a line for each case: file, seconds, the mutants reached, name.
struct ReachListener : doctest::IReporter {
  const doctest::TestCaseData* now = nullptr;
  std::chrono::steady_clock::time_point start;
  explicit ReachListener(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& c) override { now = &c; start = std::chrono::steady_clock::now(); }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    unsigned char* reached = mutant_control().reached;
    const char* log = std::getenv("DPT_MUTANTS_LOG");
    if (!reached || !log) return;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::FILE* out = std::fopen(log, "a");
    std::fprintf(out, "%s\t%.3f\t%d\t", now->m_file.c_str(), took.count(), stats.testCaseSuccess ? 1 : 0);
    for (int i = 0; i < MUTANTS; ++i)
      if (reached[i]) std::fprintf(out, "%d ", i), reached[i] = 0;
    std::fprintf(out, "\t%s\n", now->m_name);
    std::fclose(out);
  }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("reach", 1, ReachListener);
'''

def sources(where):
    out, number = [], 0
    for file in [f for folder in FOLDERS for f in sorted((where / folder).glob('*.cpp'))]:
        source = Source(file)
        for m in sorted(source.mutants, key=lambda m: (m['begin'], m['end'], m['kind'])):
            m['id'], number = number, number + 1
        out.append(source)
    return out


def render(where, all_sources, live):
    for s in all_sources:
        place = s.path.relative_to(ROOT)
        text = s.rendered(live)
        inc = where / 'tree' / place.with_suffix('.mutated.inc')
        if not inc.exists() or inc.read_text() != text:
            inc.write_text(text)
        outer = where / 'tree' / place
        include = f'#include "{inc.relative_to(where / "tree" / "src")}"\n'
        if outer.read_text() != include:
            outer.write_text(include)


def make(where, _):
    tree = where / 'tree'
    if not tree.exists():
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns('build', 'build-*', '.git'))
    all_sources = sources(ROOT)
    count = sum(len(s.mutants) for s in all_sources)
    (tree / 'src/mutant_control.h').write_text(CONTROL.replace('MUTANTS,', f'{count},'))
    main = (ROOT / 'tests/main.cpp').read_text()
    (tree / 'tests/main.cpp').write_text(main + LISTENER.replace('MUTANTS;', f'{count};'))
    render(where, all_sources, set(range(count)))
    save(where, all_sources, set(range(count)))
    print(count, 'mutants')


def save(where, all_sources, live):
    rows = [{'id': m['id'], 'file': str(s.path.relative_to(ROOT)), 'line': s.line(m['begin']), 'kind': m['kind'],
             'before': s.flat(m['begin'], m['end']), 'after': m['alternative']}
            for s in all_sources for m in s.mutants if m['id'] in live]
    (where / 'mutants.json').write_text(json.dumps(sorted(rows, key=lambda r: r['id']), indent=0))


def check(where, _):
    all_sources = sources(ROOT)
    live = {m['id'] for m in json.loads((where / 'mutants.json').read_text())}
    tree, todo = where / 'tree', list(all_sources)
    while todo:
        failing = []
        for s in todo:
            inc = s.path.relative_to(ROOT).with_suffix('.mutated.inc')
            command = ['g++', '-std=c++20', '-fsyntax-only', '-w', '-fmax-errors=0', '-fdiagnostics-color=never',
                       '-DDPT_ONEDNN=1', '-DDPT_VERSION="0"', '-Isrc', '-Ibuild-test/gcc/src', '-xc++', str(inc)]
            done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
            if done.returncode == 0:
                continue
            text, dropped = (tree / inc).read_text().split('#line 1\n')[1].split('\n'), set()
            for place in re.finditer(rf'{re.escape(inc.name)}:(\d+):(\d+): (error|  required)', done.stderr):
                line = text[int(place[1]) - 1]
                numbers = [int(n) for n in re.findall(r'mutant_on\((\d+)\)', line[:int(place[2])])]
                numbers = numbers or [int(n) for n in re.findall(r'mutant_on\((\d+)\)', line)]
                dropped |= set([n for n in numbers if n in live][-1:])
            if not dropped:
                sys.exit(f'{inc}: no mutant to blame\n{done.stderr[:3000]}')
            live -= dropped
            failing.append(s)
        print(len(live), 'left;', ' '.join(s.path.name for s in failing), flush=True)
        render(where, all_sources, live)
        todo = failing
    save(where, all_sources, live)
