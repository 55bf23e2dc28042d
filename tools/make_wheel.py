"""Packages an installed tree of dptrain and the shared libraries it needs as a Python wheel.

pip puts bin/ of the wheel's prefix on the PATH, and share/ and lib/ next to it, so the program finds
its files and libraries as in any other prefix: by paths relative to itself. Python never runs.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
import zipfile

# What every Linux that a manylinux tag admits has (PEP 600); the program brings the rest.
OF_THE_SYSTEM = re.compile(r'(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|util|resolv|gcc_s|stdc\+\+))\.so')
# The least minor version of glibc among systems whose libstdc++ has GLIBCXX_3.4.N, by N.
GLIBC_OF_GLIBCXX = {28: 31, 29: 34, 30: 35, 31: 38, 32: 39, 33: 41}

METADATA = '''Metadata-Version: 2.1
Name: dptrain
Version: {version}
Summary: Trains neural networks described in one YAML file
License: MIT
Requires-Python: >=3.7
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Description-Content-Type: text/markdown

{readme}'''


def fail(what, remedy):
    sys.exit(f'make_wheel.py: error: {what}\n  {remedy}')


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'}).stdout


def bundled_libraries(program):
    """Name -> file of each library that the program needs, itself or through another one."""
    found = {}
    for line in output_of('ldd', str(program)).splitlines():
        name, _, path = line.strip().partition(' => ')
        if OF_THE_SYSTEM.match(pathlib.Path(name.split()[0]).name):
            continue
        path = path.rsplit(' (', 1)[0]
        if not path or path == 'not found':
            fail(f'{name} is not found', 'install the library, then run this again')
        found[name] = pathlib.Path(path).resolve()
    return found


def platform_tag(files):
    """manylinux_2_N_ARCH for the newest versions of system libraries that the files ask for."""
    glibc = 17
    for file in files:
        needs = output_of('readelf', '--version-info', '--wide', str(file))
        glibc = max([glibc] + [int(n) for n in re.findall(r'Name: GLIBC_2\.(\d+)', needs)])
        if 'GLIBC_ABI_DT_RELR' in needs:
            glibc = max(glibc, 36)
        for n in map(int, re.findall(r'Name: GLIBCXX_3\.4\.(\d+)', needs)):
            if n >= min(GLIBC_OF_GLIBCXX):
                here = int(platform.libc_ver()[1].split('.')[1])
                glibc = max(glibc, GLIBC_OF_GLIBCXX.get(n, here))
    return f'manylinux_2_{glibc}_{platform.machine()}'


def licenses(libraries):
    """File name -> text of the licences of the bundled libraries, as their packages state them."""
    out = {}
    for name, file in libraries.items():
        owner = ''
        for path in (file, pathlib.Path(str(file).removeprefix('/usr'))):
            found = subprocess.run(['dpkg-query', '-S', str(path)], capture_output=True, text=True)
            owner = owner or found.stdout.partition(':')[0]
        text = pathlib.Path('/usr/share/doc', owner, 'copyright')
        if not owner or not text.exists():
            fail(f'the licence of {file} is not found', 'a wheel that carries the library must also carry its licence')
        out[f'{owner}.txt'] = text.read_bytes()
    return out


class Wheel:
    def __init__(self, path, date):
        self.zip = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=6)
        self.date = max(time.gmtime(date)[:6], (1980, 1, 1, 0, 0, 0))
        self.record = []

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name, self.date)
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        self.record.append(f'{name},sha256={digest},{len(data)}')

    def close(self, record_name):
        self.record.append(f'{record_name},,')
        self.add(record_name, ('\n'.join(self.record) + '\n').encode())
        self.zip.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument('--tree', type=pathlib.Path, required=True, help='what `meson install` installed, the prefix')
    arguments.add_argument('--version', required=True)
    arguments.add_argument('--out', type=pathlib.Path, required=True, help='the folder of the wheel')
    a = arguments.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    program = a.tree / 'bin/dptrain'
    libraries = bundled_libraries(program)
    tag = f'py3-none-{platform_tag([program, *libraries.values()])}'
    base = f'dptrain-{a.version}'
    path = a.out / f'{base}-{tag}.whl'
    wheel = Wheel(path, int(os.environ.get('SOURCE_DATE_EPOCH', time.time())))
    wheel.add(f'{base}.data/scripts/dptrain', program.read_bytes(), executable=True)
    for folder in ('lib/dptrain', 'share'):
        for file in sorted((a.tree / folder).rglob('*')):
            if file.is_file():
                wheel.add(f'{base}.data/data/{file.relative_to(a.tree)}', file.read_bytes(), os.access(file, os.X_OK))
    for name, file in sorted(libraries.items()):
        wheel.add(f'{base}.data/data/lib/dptrain/{name}', file.read_bytes())
    info = f'{base}.dist-info'
    for name, text in sorted(licenses(libraries).items()):
        wheel.add(f'{info}/licenses/{name}', text)
    wheel.add(f'{info}/licenses/LICENSE', (root / 'LICENSE').read_bytes())
    wheel.add(f'{info}/METADATA', METADATA.format(version=a.version, readme=(root / 'README.md').read_text()).encode())
    wheel.add(f'{info}/WHEEL', f'Wheel-Version: 1.0\nGenerator: dptrain\nRoot-Is-Purelib: false\nTag: {tag}\n'.encode())
    wheel.close(f'{info}/RECORD')
    print(path)


if __name__ == '__main__':
    main()
