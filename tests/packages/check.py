"""Installs a package of dptrain in an empty root and runs it there as another user.

    check.py deb|wheel BUILD [--module FILE]

The root holds the package, the libraries it may count on, and nothing else: no shell, no tools. For a
.deb these are the files of the packages it depends on, for a wheel the C and C++ libraries. Ends with
77 if this machine lacks what is needed.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534


def skip(why):
    print(f'skipped: {why}')
    sys.exit(77)


def check(good, what, text=''):
    if not good:
        sys.exit(f'failed: {what}\n{text}')


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    check(done.returncode == 0, ' '.join(map(str, command)), done.stdout)
    return done.stdout


def package(kind, build, out):
    if not shutil.which('meson') or not shutil.which('strip'):
        skip('no meson or no binutils')
    run(REPOSITORY / 'tools/package.sh', f'--{kind}', '--build', build, '--out', out)
    files = list(out.iterdir())
    check(len(files) == 1, f'one package, not {files}')
    print(f'{files[0].name}: {files[0].stat().st_size >> 20} MiB')
    return files[0]


# The empty root.

def make_root(root):
    for folder in ('usr/lib', 'usr/lib64', 'proc', 'dev/shm', 'tmp', 'home/user'):
        (root / folder).mkdir(parents=True)
    for folder in ('lib', 'lib64'):
        (root / folder).symlink_to(f'usr/{folder}')
    if os.geteuid() == 0:
        os.chown(root / 'home/user', NOBODY, NOBODY)
    for folder in (root, *root.rglob('*')):
        if not folder.is_symlink():
            folder.chmod(0o755)
    (root / 'tmp').chmod(0o1777)


def packages_below(names):
    """These packages and all that they depend on, as far as they are installed here."""
    seen, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        found = subprocess.run(['dpkg-query', '-W', '-f=${db:Status-Status} ${Pre-Depends}, ${Depends}\n', name],
                               capture_output=True, text=True)
        if not found.stdout.startswith('installed'):
            continue
        seen.add(name)
        depends = found.stdout.split(' ', 1)[1]
        todo += [re.split(r'[ :(]', d.strip())[0] for d in re.split(r'[,|]', depends) if d.strip()]
    return seen


def add_libraries(root, packages):
    """Copies the shared libraries of the packages to where their files list has them."""
    for name in packages_below(packages):
        for path in map(pathlib.Path, run('dpkg-query', '-L', name).splitlines()):
            if not re.fullmatch(r'(/usr)?/lib(64|/[a-z0-9_]+-linux-gnu)?/[^/]+\.so[^/]*', str(path)):
                continue
            copy = root / str(path).lstrip('/')
            if os.path.lexists(copy):
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy, follow_symlinks=False)


# In a mount namespace of its own: /proc, since the program asks it where it lies, and /dev/shm.
INSIDE = '''
import os, subprocess, sys
root, user, *command = sys.argv[1:]
subprocess.run(['mount', '--rbind', '/proc', root + '/proc'], check=True)
subprocess.run(['mount', '-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', root + '/dev/shm'], check=True)
open(root + '/dev/null', 'a').close()
subprocess.run(['mount', '--bind', '/dev/null', root + '/dev/null'], check=True)
os.chroot(root)
os.chdir('/home/user')
if user != '0':
    os.setgroups([]), os.setgid(int(user)), os.setuid(int(user))
os.execve(command[0], ['dptrain', *command[1:]], {'HOME': '/home/user', 'OMP_NUM_THREADS': '1'})
'''


class Root:
    def __init__(self, path, program):
        self.path, self.program = path, program
        self.user = str(NOBODY) if os.geteuid() == 0 else '0'
        self.unshare = ['unshare', '--mount'] + ([] if os.geteuid() == 0 else ['--map-root-user'])
        make_root(path)

    def check_can_enter(self):
        if not shutil.which('unshare'):
            skip('no unshare')
        probe = [*self.unshare, 'sh', '-c', f'mount --rbind /proc {self.path}/proc && chroot / true']
        if subprocess.run(probe, capture_output=True).returncode != 0:
            skip('neither root nor user namespaces that may mount')

    def run(self, *words):
        done = subprocess.run([*self.unshare, sys.executable, '-c', INSIDE, str(self.path), self.user, self.program, *words],
                              capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def succeeds(self, *words):
        code, out, err = self.run(*words)
        check(code == 0, f'{" ".join(words)}: exit code {code}', out + err)
        return out + err


def check_program(root, module):
    """What the packages promise: the program runs from an empty folder, and finds its files."""
    prefix = str(pathlib.PurePath(root.program).parents[1])
    print(root.succeeds('--version').strip())
    configs = f'{prefix}/share/dptrain/configs'
    check(f'[x] configs      {configs}' in root.succeeds('doctor'), 'doctor names the configs')
    trained = root.succeeds('configs/ddp_toy.yaml', 'epochs=2')
    check(f'configs/ddp_toy.yaml does not exist; reading {configs}/ddp_toy.yaml' in trained,
          'the config is named', trained)
    check((root.path / 'home/user/runs/ddp_toy/latest/model.safetensors').exists(), 'a run writes its weights', trained)
    root.succeeds('eval', 'configs/ddp_toy.yaml')
    root.succeeds('configs/lenet.yaml', 'data.dataset=synthetic_images', 'data.dataset.samples=64', 'data.batch_size=32',
                  'epochs=1')
    bench = root.succeeds('bench', 'configs/dp_toy.yaml', '--modes', 'single', '--rounds', '1', '--seconds', '0.01')
    check(bench.count('does not exist; reading') == 1, 'bench names the config once', bench)
    schema = root.path / f'{prefix}/share/dptrain/schema/dptrain.schema.json'.lstrip('/')
    check(root.run('schema')[1] == schema.read_text(), 'the schema is installed')
    code, _, error = root.run('configs/fmnist_ddp.yaml')
    script = f'{prefix}/share/dptrain/tools/fetch_data.sh'
    check(code == 4 and f'Run {script} fashion_mnist' in error, 'without data, the installed script is named', error)
    check(os.access(root.path / script.lstrip('/'), os.X_OK), 'the script is installed')
    if (root.path / f'{prefix}/lib/dptrain/libdptrain_gloo.so'.lstrip('/')).exists():  # not so its library
        missing = 'libgloo.so.0: cannot open shared object file: No such file or directory; install libgloo0'
        check(missing in root.succeeds('doctor'), "gloo's library is named", root.succeeds('doctor'))
    if module:
        place = f'{prefix}/lib/dptrain/libdptrain_cuda.so'
        (root.path / place.lstrip('/')).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, root.path / place.lstrip('/'))
        check(f'[x] cuda         {place}: ' in root.succeeds('doctor'), 'the module is found', root.succeeds('doctor'))


def check_deb(build, folder, module):
    for tool in ('dpkg-deb', 'dpkg-shlibdeps', 'dpkg-query'):
        if not shutil.which(tool):
            skip(f'no {tool}')
    file = package('deb', build, folder / 'out')
    if shutil.which('lintian'):
        found = subprocess.run(['lintian', '--allow-root', '--no-cfg', str(file)], capture_output=True, text=True)
        mistakes = [line for line in found.stdout.splitlines() if re.match('[EW]: ', line)]
        check(not mistakes, 'lintian', '\n'.join(mistakes))
    else:
        print('skipped in part: no lintian')
    depends = run('dpkg-deb', '-f', file, 'Depends')
    print(f'Depends: {depends.strip()}')
    root = Root(folder / 'root', '/usr/bin/dptrain')
    add_libraries(root.path, [re.split(r'[ (]', d.strip())[0] for d in depends.split(',')])
    run('dpkg-deb', '-x', file, folder / 'tree')
    shutil.copytree(folder / 'tree', root.path, dirs_exist_ok=True, symlinks=True)
    for name in ('man/man1/dptrain.1.gz', 'bash-completion/completions/dptrain', 'zsh/vendor-completions/_dptrain',
                 'fish/vendor_completions.d/dptrain.fish', 'doc/dptrain/copyright', 'doc/dptrain/changelog.gz'):
        check((root.path / 'usr/share' / name).exists(), f'the package has {name}')
    root.check_can_enter()
    check_program(root, module)


def check_wheel(build, folder, module):
    if not shutil.which('dpkg-query'):
        skip('no dpkg-query, which finds the licences of libraries')
    file = package('wheel', build, folder / 'out')
    venv = folder / 'venv'
    if subprocess.run([sys.executable, '-m', 'venv', str(venv)], capture_output=True).returncode != 0:
        skip('no venv module; on Debian, install python3-venv')
    run(venv / 'bin/pip', 'install', '--no-index', '--disable-pip-version-check', file)
    print(run(venv / 'bin/dptrain', '--version', env={}).strip())
    loaded = run('ldd', venv / 'bin/dptrain', env={})
    for line in loaded.splitlines():
        name, _, path = line.strip().partition(' => ')
        if path and not re.match(r'lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so', name):
            check(path.startswith(f'{venv}/'), f'{name} comes with the wheel', loaded)
    # Moved, too: an environment's program runs wherever it lies.
    root = Root(folder / 'root', '/opt/env/bin/dptrain')
    add_libraries(root.path, ['libc6', 'libstdc++6', 'libgcc-s1'])
    for name in ('bin/dptrain', 'lib/dptrain', 'share'):
        copy = root.path / 'opt/env' / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (venv / name).is_dir() else shutil.copy2)(venv / name, copy)
    check((venv / 'share/man/man1/dptrain.1').exists(), 'the wheel has the manual page')
    root.check_can_enter()
    check_program(root, module)
    run(venv / 'bin/pip', 'uninstall', '--yes', '--disable-pip-version-check', 'dptrain')
    left = [str(p) for p in venv.rglob('*dptrain*') if not p.is_dir()]
    check(not left, f'pip uninstalls everything, not {left}')


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('kind', choices=['deb', 'wheel'])
    arguments.add_argument('build', type=pathlib.Path)
    arguments.add_argument('--module', type=pathlib.Path, help='a module for GPUs, to be found where packages put it')
    a = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        path.chmod(0o755)
        (path / 'root').mkdir()
        (check_deb if a.kind == 'deb' else check_wheel)(a.build.resolve(), path, a.module)


if __name__ == '__main__':
    main()
