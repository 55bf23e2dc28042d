#!/usr/bin/env python3
"""Follows each recipe of docs/contributing.md in a copy of the tree, and trains with what it added.

Copies the sources, adds the files in files/ and one word to each list, and takes over the object files of the build
that runs this test: so only what the additions change is compiled. Then it trains spec.yaml, which uses a layer, an
operator, a loss, an optimizer, a schedule, a data set and a transform of the additions, in several modes.

Exits with 77 where meson or ninja is missing.

Usage: check.py BUILD"""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COPIED = ['configs', 'datasets', 'docs', 'meson.build', 'meson_options.txt', 'schema', 'src', 'tests', 'tools',
          'LICENSE', 'README.md']
# What a recipe says beside its files: the list that gets the word.
WORDS = [
    ('src/layers/meson.build', "layers = ['flatten'", "layers = ['tripled', 'flatten'"),
    ('src/graph/operators/meson.build', "['add', 'cast'", "['triple', 'add', 'cast'"),
    ('tests/graph/samples/movement.cpp', 'elementwise_samples("multiply", 2);\n',
     'elementwise_samples("multiply", 2);\n  out += elementwise_samples("triple", 1);\n'),
    ('src/graph/formulas/losses.h', '#include "graph/formulas/losses/huber.h"\n',
     '#include "graph/formulas/losses/half_square.h"\n#include "graph/formulas/losses/huber.h"\n'),
    ('src/graph/formulas/losses.h', 'FormulaList<Mse', 'FormulaList<HalfSquare, Mse'),
    ('src/graph/formulas/optimizers.h', '#include "graph/formulas/optimizers/sgd.h"\n',
     '#include "graph/formulas/optimizers/sgd.h"\n#include "graph/formulas/optimizers/sign.h"\n'),
    ('src/graph/formulas/optimizers.h', 'OptimizerList<Sgd', 'OptimizerList<Sign, Sgd'),
    ('src/optim/meson.build', "optimizers = ['", "optimizers = ['sign', '"),
    ('src/optim/meson.build', "schedules = ['", "schedules = ['fading', '"),
    ('src/data/meson.build', "datasets = ['", "datasets = ['line', '"),
    ('src/data/meson.build', "transforms = ['to_tensor'", "transforms = ['squared', 'to_tensor'"),
    ('src/cli/meson.build', "commands = ['train'", "commands = ['train', 'greet'"),
]
SKIPPED = 77


def skip(why):
    print(f'skipped: {why}')
    sys.exit(SKIPPED)


def run(*command, **options):
    print('+', ' '.join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        print(done.stdout[-6000:])
        sys.exit(f'this failed with exit code {done.returncode}')
    return done.stdout


def copy_tree(to):
    ignored = shutil.ignore_patterns('__pycache__')
    for name in COPIED:
        source, target = os.path.join(ROOT, name), os.path.join(to, name)
        if os.path.isdir(source):
            shutil.copytree(source, target, ignore=ignored)  # keeps times, which ninja compares
        else:
            shutil.copy2(source, target)


def add_files(to):
    added = []
    for folder, _, names in os.walk(os.path.join(HERE, 'files')):
        for name in names:
            path = os.path.join(folder, name)
            target = os.path.relpath(path, os.path.join(HERE, 'files'))
            assert not os.path.exists(os.path.join(to, target)), f'{target} exists'
            shutil.copyfile(path, os.path.join(to, target))
            added.append(target)
            # A registry entry has a test beside it, whose file the list names, too.
            if target.endswith('.cpp'):
                test = os.path.join(to, 'tests', target[len('src/'):-len('.cpp')] + '_test.cpp')
                with open(test, 'w', encoding='utf-8') as f:
                    f.write('#include <doctest/doctest.h>\n')
    for path, old, new in WORDS:
        path = os.path.join(to, path)
        with open(path, encoding='utf-8') as f:
            text = f.read()
        assert text.count(old) == 1, f'{path} has {old!r} {text.count(old)} times'
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text.replace(old, new))
    return added


def options_of(build):
    """The options of a build as words for meson."""
    with open(os.path.join(build, 'meson-info/intro-buildoptions.json'), encoding='utf-8') as f:
        options = {o['name']: o['value'] for o in json.load(f)}
    same = ['buildtype', 'optimization', 'debug', 'werror', 'warning_level', 'b_ndebug', 'onednn', 'jpeg', 'png',
            'webp', 'tiff', 'folder_units']
    return [f'-D{name}={str(options[name]).lower()}' for name in same if name in options] + ['-Dtests=disabled',
                                                                                             '-Dcuda=disabled']


def take_over(build, to):
    """Copies what is compiled already, and the units of several files, which are written again if they change."""
    shutil.copy2(os.path.join(build, '.ninja_deps'), os.path.join(to, '.ninja_deps'))
    with open(os.path.join(build, '.ninja_log'), encoding='utf-8') as old, \
            open(os.path.join(to, '.ninja_log'), 'w', encoding='utf-8') as new:
        new.writelines(line for line in old if '\tbuild.ninja\t' not in line)  # or meson would run again
    for folder, _, names in os.walk(os.path.join(build, 'src')):
        target = os.path.join(to, os.path.relpath(folder, build))
        for name in names:
            source, copy = os.path.join(folder, name), os.path.join(target, name)
            written = name.endswith('.cpp') and os.path.exists(copy)  # by meson, with the additions
            if name.endswith(('.o', '.cpp', '.cpp.d')) and (
                    not written or filecmp.cmp(source, copy, shallow=False)):
                os.makedirs(target, exist_ok=True)
                shutil.copy2(source, copy)


def unoptimized(compiler, folder):
    """An environment in which the compiler, called by the same name, does not optimize: ninja reuses an output only if
    its command line is unchanged."""
    name = compiler.split()[-1]
    if '/' in name:
        return dict(os.environ)
    wrapper = os.path.join(folder, name)
    with open(wrapper, 'w', encoding='utf-8') as f:
        f.write(f'#!/bin/sh\nexec {shutil.which(name)} "$@" -O0\n')
    os.chmod(wrapper, 0o755)
    return os.environ | {'PATH': folder + ':' + os.environ['PATH']}


def compiler_of(build):
    """The compiler as meson was given it: ninja compiles again what another command made."""
    with open(os.path.join(build, 'build.ninja'), encoding='utf-8') as f:
        command = re.search(r'rule cpp_COMPILER\n command = (.*?) \$ARGS', f.read())
    return command[1].replace('"', '') if command else 'c++'


def loss_of(program, spec, folder, *words):
    return float(run(program, spec, f'out={folder}', *words, '--print', 'loss').split()[-1])


def main():
    build = sys.argv[1]
    if not shutil.which('meson') or not shutil.which('ninja'):
        skip('meson or ninja is missing')
    options = options_of(build)
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, 'tree')
        os.mkdir(tree)
        copy_tree(tree)
        added = add_files(tree)
        # Commands name the sources as seen from the build's folder.
        inside = os.path.relpath(os.path.realpath(build), ROOT)
        mine = os.path.join(tree, 'build' if inside.startswith('..') else inside)
        compiler = compiler_of(build)
        run('meson', 'setup', mine, tree, *options, env=os.environ | {'CXX': compiler})
        take_over(build, mine)
        jobs = os.environ.get('DPT_JOBS', str(os.cpu_count()))
        output = run('ninja', '-C', mine, '-j', jobs, 'src/dptrain', env=unoptimized(compiler, folder))
        print(f"compiled {len(re.findall('Compiling', output))} files for {len(added)} new ones")

        program, spec = os.path.join(mine, 'src/dptrain'), os.path.join(HERE, 'spec.yaml')
        assert run(program, 'greet') == 'Hello\n'
        first = loss_of(program, spec, folder + '/first', 'epochs=1')
        last = loss_of(program, spec, folder + '/last')
        print(f'loss {first:.4f}, then {last:.4f}')
        assert last < first / 4, 'it did not learn'
        for words in (['parallel=dp', 'devices=2'], ['parallel=ddp', 'devices=2'], ['precision=bf16']):
            other = loss_of(program, spec, folder + '/' + words[0], *words)
            assert other < first / 3, (words, other)
        plan = run(program, 'plan', spec)
        assert ' triple ' in plan, plan
        gpu = subprocess.run([program, 'plan', spec, 'device=cuda'], capture_output=True, text=True, check=False)
        refused = "layer '2' needs the operator 'triple', which has no kernel for GPUs"
        assert gpu.returncode == 2 and refused in gpu.stderr, gpu.stderr
        for word in ['tripled', 'half_square', 'sign', 'fading', 'line', 'squared']:
            assert word in run(program, 'explain', word), word
        example = os.path.join(folder, 'wrong.yaml')
        with open(spec, encoding='utf-8') as f, open(example, 'w', encoding='utf-8') as to:
            to.write(f.read().replace('- tripled', '- tripledd'))
        wrong = subprocess.run([program, 'check', example], capture_output=True, text=True, check=False)
        assert wrong.returncode == 2 and "did you mean 'tripled'?" in wrong.stderr, wrong.stderr


main()
