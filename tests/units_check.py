"""Files are compiled together (tools/units.py) only where each name means what it means in the file alone.

Usage: units_check.py PATH_OF_UNITS_PY"""
import pathlib
import re
import subprocess
import sys
import tempfile

FILES = {
    'header.h': 'namespace dpt { struct Shape {}; }\n',
    'helper.cpp': 'namespace dpt { namespace {\nint helper(int x) { return x; }\n}\nint a() { return helper(1); } }\n',
    'same_helper.cpp': 'namespace dpt { namespace {\nint helper() { return 2; }\n}\nint b() { return helper(); } }\n',
    'constants.cpp': 'namespace dpt {\nconstexpr int kLeft = 1, kRight = 2;\nint c() { return kLeft + kRight; } }\n',
    'same_constant.cpp': 'namespace dpt { namespace {\nconst int kRight = 3;\n}\nint d() { return kRight; } }\n',
    'own_shape.cpp': 'namespace dpt { namespace {\nstruct Shape { int n; };\n}\nint e() { return sizeof(Shape); } }\n',
    'with_header.cpp': '#include "header.h"\nnamespace dpt { int f() { return 0; } }\n',
    'in_text.cpp': '// helper kRight Shape\nnamespace dpt { const char* h() { return "helper Shape"; } }\n',
}
APART = [('helper', 'same_helper'), ('constants', 'same_constant'), ('own_shape', 'with_header')]

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name).resolve()
    for file, text in FILES.items():
        (folder / file).write_text(text)
    sources = sorted(str(folder / f) for f in FILES if f.endswith('.cpp'))
    made = subprocess.run([sys.executable, sys.argv[1], name, 'unit', *sources], check=True, capture_output=True,
                          text=True)
    units = [re.findall(r'[/"](\w+)\.cpp"', pathlib.Path(path).read_text()) for path in made.stdout.split()]

place = {file: i for i, unit in enumerate(units) for file in unit}
wrong = [f'{a} and {b} are in one unit' for a, b in APART if place[a] == place[b]]
if sorted(file for unit in units for file in unit) != sorted(pathlib.Path(f).stem for f in sources):
    wrong.append('a file is in no unit, or in two')
if len(units) > 3:
    wrong.append(f'{len(units)} units: files that may meet are apart')
print('\n'.join(wrong) or 'units are right', units)
sys.exit(bool(wrong))
