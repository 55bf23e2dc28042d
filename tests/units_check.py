"""In units of several files (tools/units.py), each name means what it means in the file alone.

Each source has a function that returns the source's number, by way of names that others have as well. A program of the
units calls them all.

Usage: units_check.py PATH_OF_UNITS_PY COMPILER..."""
import os
import pathlib
import subprocess
import sys
import tempfile

HEADERS = {
    'header': 'namespace dpt { struct Shape { char n[5]; }; struct Row { int (*helper)(); }; }',
    'methods': 'namespace dpt { struct Counter { int count(); int start(); }; }',
    'spare': 'namespace dpt::spare { inline int nine() { return 9; } }',
}
# FUNCTION stands for the function that returns the place in this list.
SOURCES = [
    ('helper', 'namespace dpt { namespace { int helper(int x) { return x; } } int FUNCTION { return helper(0); } }'),
    ('same_helper', 'namespace dpt { namespace { int helper() { return 1; } } int FUNCTION { return helper(); } }'),
    ('constants', 'namespace dpt { constexpr int kLeft = 1, kRight = 1; int FUNCTION { return kLeft + kRight; } }'),
    ('same_constant', 'namespace dpt { namespace { const int kRight = 3; } int FUNCTION { return kRight; } }'),
    # A type that a header of another file declares, too.
    ('own_shape', 'namespace dpt { namespace { struct Shape { char n[4]; }; }\n'
                  'int FUNCTION { return sizeof(Shape); } }'),
    ('with_header', '#include "header.h"\nnamespace dpt { int FUNCTION { return sizeof(Shape); } }'),
    # Text stays as it is, and so does the name of another struct's member.
    ('in_text', '#include "header.h"\nnamespace dpt { namespace {\n'
                'int helper() { return sizeof("helper") - 1; } }  // helper\n'
                'int FUNCTION { const Row row{.helper = helper}; return row.helper() * 1\'0 / 10; } }'),
    # This one can be with none of the others that have a helper.
    ('member', 'namespace dpt { namespace { struct Own { int helper; }; int helper() { return 7; } }\n'
               'int FUNCTION { const Own own{helper()}; return own.helper; } }'),
    # A method is called by its bare name.
    ('methods', '#include "methods.h"\nnamespace dpt { int Counter::start() { return 8; }\n'
                'int Counter::count() { return start(); } int FUNCTION { return Counter().count(); } }'),
    ('start', 'namespace dpt { namespace { int start() { return 9; } } int FUNCTION { return start(); } }'),
    ('directive', '#include "spare.h"\nnamespace dpt { using namespace spare; int FUNCTION { return nine() + 1; } }'),
    ('own_nine', 'namespace dpt { namespace { int nine() { return 11; } } int FUNCTION { return nine(); } }'),
]
MOST_UNITS = 3  # that of all others, that of `member`, and that of `directive`
units_py, compiler = sys.argv[1], sys.argv[2:]

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name).resolve()
    for header, text in HEADERS.items():
        (folder / f'{header}.h').write_text(f'#pragma once\n{text}\n')
    sources = []
    for number, (source, text) in enumerate(SOURCES):
        sources.append(os.path.relpath(folder / f'{source}.cpp'))
        pathlib.Path(sources[-1]).write_text(text.replace('FUNCTION', f'number_{number}()') + '\n')
    made = subprocess.run([sys.executable, units_py, '--group', *sources], check=True, capture_output=True, text=True)
    groups = [line.split('\t') for line in made.stdout.splitlines()]
    (folder / 'out').mkdir()
    units = []
    for i, group in enumerate(groups):
        units.append(folder / f'out/unit_{i}.cpp')
        subprocess.run([sys.executable, units_py, '--write', units[-1], *group], check=True)
    numbers = range(len(SOURCES))
    (folder / 'out/main.cpp').write_text(
        '#include <cstdio>\nnamespace dpt { ' + ' '.join(f'int number_{n}();' for n in numbers) + ' }\nint main() {'
        + ' '.join(f'std::printf("%d ", dpt::number_{n}());' for n in numbers) + ' }\n')
    program = folder / 'out/program'
    subprocess.run([*compiler, '-std=c++20', f'-I{folder}', '-o', program, folder / 'out/main.cpp', *units], check=True)
    got = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()
    depends = [pathlib.Path(f'{unit}.d').read_text() for unit in units]

wrong = [f'{SOURCES[n][0]} returns {got[n]} instead of {n}' for n in numbers if got[n] != str(n)]
if sorted(file for group in groups for file in group) != sorted(sources):
    wrong.append('a file is in no unit, or in two')
if len(groups) > MOST_UNITS:
    wrong.append(f'{len(groups)} units: files that may meet are apart')
wrong += [f'no unit depends on {file}' for file in [*sources, *(os.path.relpath(folder / f'{h}.h') for h in HEADERS)]
          if not any(file in text for text in depends)]
print('\n'.join(wrong) or 'units are right:', [[pathlib.Path(f).stem for f in group] for group in groups])
sys.exit(bool(wrong))
