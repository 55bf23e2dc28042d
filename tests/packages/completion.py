"""Completes command lines with the scripts that dptrain prints, in the shells that this machine has.

    completion.py DPTRAIN
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(sys.argv[1]).resolve()

SPEC = """name: my
data: {dataset: fashion_mnist, batch_size: 16}
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: {lr: 0.1}}
evaluate: {metrics: [accuracy, top5]}
epochs: 1
"""
FILES = {'my.yaml': SPEC, 'broken.yaml': 'data: [', 'notes.txt': '', 'folder/x': '', 'spaced folder/x': '',
         'runs/first/1/spec.resolved.yaml': SPEC, 'runs/first/2/spec.resolved.yaml': SPEC, 'runs/empty/x': '',
         'runs/lr=0.1/1/spec.resolved.yaml': '', 'runs/a:b/1/spec.resolved.yaml': '',
         'runs/with blank/metrics.jsonl': ''}

# What stands in front of the cursor, some of what must be offered, and what must not.
CASES = [
    ('dptrain ev', ['eval'], ['bench']),
    ('dptrain tr', ['train'], []),
    ('dptrain help ben', ['bench'], ['my.yaml']),
    ('dptrain m', ['my.yaml', 'manual'], ['notes.txt']),
    ('dptrain check m', ['my.yaml'], ['manual', 'notes.txt']),
    ('dptrain my.yaml epo', ['epochs='], []),
    ('dptrain my.yaml optimizer.l', ['optimizer.lr='], ['optimizer.momentum=']),
    ('dptrain eval my.yaml data.b', ['data.batch_size=', 'data.batch_size_per_replica='], []),
    ('dptrain my.yaml epochs=3 parallel=d', ['ddp', 'dp'], ['single']),
    ('dptrain my.yaml data.shuffle=f', ['false'], ['true']),
    ('dptrain my.yaml optimizer=ada', ['adam', 'adam_w'], ['sgd']),
    ('dptrain my.yaml --re', ['--resume'], ['--svg']),
    ('dptrain --ver', ['--version'], []),
    ('dptrain bench my.yaml --ro', ['--rounds'], ['--row', '--resume']),
    ('dptrain plan my.yaml --s', ['--svg'], []),
    ('dptrain plan my.yaml --svg n', ['notes.txt'], []),
    ('dptrain export my.yaml --to t', ['torch'], []),
    ('dptrain explain cross_', ['cross_entropy'], []),
    ('dptrain completion ', ['bash', 'zsh', 'fish'], ['my.yaml']),
    ('dptrain runs ', ['first'], ['folder']),
    ('dptrain runs fo', ['folder'], ['notes.txt']),
    # Runs, and files where no run has the name.
    ('dptrain predict f', ['first', 'folder'], []),
    ('dptrain predict first n', ['notes.txt'], []),
    ('dptrain watch f', ['first'], ['folder']),
    ('dptrain watch ', ['first', 'lr=0.1', 'a:b'], ['empty', 'notes.txt']),
    ('dptrain watch first/', ['first/1', 'first/2'], []),
    ('dptrain watch fo', ['folder'], []),
    ('dptrain generate f', ['first'], []),
    ('dptrain generate --prompt first f', ['first'], []),
    ('dptrain report f', ['first'], []),
    ('dptrain report a:b f', ['first'], []),
    ('dptrain export f', ['first'], []),
    ('dptrain export m', ['my.yaml'], []),
    ('dptrain eval f', ['first'], []),
    ('dptrain eval first data.shuffle=f', ['false'], []),
    ('dptrain compare f', ['first'], []),
    ('dptrain compare first f', ['first'], []),
    ('dptrain compare first n', ['notes.txt'], []),
    ('dptrain my.yaml --resume ', ['auto', 'folder'], []),
    ('dptrain predict first --weights b', ['best', 'broken.yaml'], ['last']),
    ('dptrain check my.yaml b', ['broken.yaml'], []),
    # Names of numbers, and lists.
    ('dptrain my.yaml --print ', ['loss', 'test.accuracy', 'best.test.top5', 'seconds', 'weights.sha256'], ['test.f1']),
    ('dptrain my.yaml --print loss,test.t', ['test.top5'], ['test.accuracy']),
    ('dptrain my.yaml --print=lo', ['loss'], []),
    ('dptrain broken.yaml --print test.', ['test.loss', 'test.accuracy'], []),
    ('dptrain --print te', ['test.loss'], []),
    ('dptrain eval first --print ', ['loss', 'accuracy', 'top5'], ['seconds', 'f1']),
    ('dptrain eval --print ', ['loss', 'accuracy'], []),
    ('dptrain sweep my.yaml --metric test.', ['test.loss', 'test.top5'], []),
    ('dptrain sweep my.yaml --until test.t', ['test.top5='], []),
    ('dptrain bench my.yaml --compare ', ['dp', 'ddp'], ['single']),
    ('dptrain bench my.yaml --compare dp,d', ['ddp'], []),
    ('dptrain bench my.yaml --modes s', ['single'], []),
    ('dptrain bench my.yaml --precision b', ['bf16'], []),
    ('dptrain runs --sort best.test.a', ['best.test.accuracy'], []),
    ('dptrain init fash', ['fashion_mnist'], []),
    ('dptrain init n', ['notes.txt'], []),
    ('dptrain init notes.txt --header ', ['yes', 'no'], []),
    ('dptrain plan my.yaml --svg=n', ['notes.txt'], []),
]

# Lines, and what they are after TAB.
INSERTED = [
    ('dptrain ev', 'dptrain eval '),
    ('dptrain my.yaml epo', 'dptrain my.yaml epochs='),
    ('dptrain my.yaml parallel=loc', 'dptrain my.yaml parallel=local_sgd '),
    ('dptrain my.yaml --print loss,test.t', 'dptrain my.yaml --print loss,test.top5 '),
    ('dptrain watch wi', 'dptrain watch with\\ blank '),
    ('dptrain watch with\\ bl', 'dptrain watch with\\ blank '),
    ("dptrain watch 'wi", "dptrain watch 'with blank' "),
    ('dptrain watch "with b', 'dptrain watch "with blank" '),
    ('dptrain watch lr', 'dptrain watch lr=0.1 '),
    ('dptrain watch lr=0', 'dptrain watch lr=0.1 '),
    ('dptrain watch a:', 'dptrain watch a:b '),
    ('dptrain compare with\\ blank no', 'dptrain compare with\\ blank notes.txt '),
    ('dptrain watch runs/fi', 'dptrain watch runs/first/'),
    ('dptrain watch sp', 'dptrain watch spaced\\ folder/'),
    ('dptrain plan my.yaml --svg=no', 'dptrain plan my.yaml --svg=notes.txt '),
    ('~/bin/dptrain ev', '~/bin/dptrain eval '),
    ('true && X=1 dptrain ev', 'true && X=1 dptrain eval '),
]

BASH = r'''
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
compopt() { :; }
_dptrain dptrain
printf '%s\n' "${COMPREPLY[@]}"
'''

FISH = r'''
source $argv[1]
complete -C $argv[2] | string replace -r '\t.*' ''
true
'''

# zsh completes on terminals only: a shell on a pseudo terminal, in which ^X lists what fits.
ZSH = r"""
zmodload zsh/zpty
zpty z "TERM=dumb zsh -f -i"
zpty -w z "unset zle_bracketed_paste; PS1= PS2= RPS1=; setopt noautomenu nobeep; autoload -Uz compinit; \
compinit -u -D; source $1; bindkey '^X' list-choices; LISTMAX=0; print re''ady"
while zpty -r z line; do [[ $line == ready* ]] && break; done
zpty -w -n z "$2"$'\x18'
out=
for i in {1..40}; do
  sleep 0.05
  while zpty -r -t z line; do out+=$line; done
  # The line again, behind the list.
  [[ $out == *$2*$'\n'*$2* ]] && break
done
zpty -d z
print -r -- "${out//$2/ }"
"""

# What makes a shell on a terminal write its line to a file and clear it when it reads ^X.
DUMPED = {
    'bash': 'dump() { printf %s "$READLINE_LINE" >line; mv line dumped; READLINE_LINE=; }; '
            r"""bind -x '"\C-x":dump'""",
    'zsh': "dump() { print -rn -- $BUFFER >line; mv line dumped; BUFFER= }; zle -N dump; bindkey '^X' dump; "
           'autoload -Uz compinit; compinit -u -D',
    'fish': "bind \\cx 'commandline -b >line; mv line dumped; commandline \"\"'",
}
QUIET = {'bash': ['--norc', '--noprofile', '-i'], 'zsh': ['-f', '-i'], 'fish': ['--no-config', '-i']}


def environment(folder):
    return {'PATH': f'{folder}/bin:/usr/bin:/bin', 'HOME': str(folder), 'TERM': 'dumb', 'LC_ALL': 'C.UTF-8'}


def after_tab(shell, script, folder):
    """The lines of INSERTED as a shell on a terminal changes them."""
    program, terminal = pty.fork()
    if program == 0:
        os.chdir(folder)
        os.execvpe(shell, [shell, *QUIET[shell]], environment(folder))
    dumped = folder / 'dumped'

    def line_after(keys):
        os.write(terminal, keys.encode() + b'\x18')
        end = time.monotonic() + 20
        while not dumped.exists():
            if time.monotonic() > end:
                sys.exit(f'failed: {shell} does not answer')
            if select.select([terminal], [], [], 0.02)[0]:
                os.read(terminal, 65536)  # what it prints
        line = dumped.read_text().rstrip('\n')
        dumped.unlink()
        return line

    os.write(terminal, f'{DUMPED[shell]}\nsource {script}\n'.encode())
    line_after('')
    lines = [line_after(before + '\t') for before, _ in INSERTED]
    os.close(terminal)
    os.waitpid(program, 0)
    return lines


def offered(shell, script, line, folder):
    program = {'bash': ['bash', '--norc', '-c', BASH, 'bash'], 'fish': ['fish', '--no-config', '-c', FISH],
               'zsh': ['zsh', '-f', '-c', ZSH, 'zsh']}[shell]
    done = subprocess.run([*program, script, line], cwd=folder, capture_output=True, text=True,
                          env=environment(folder))
    if done.returncode != 0 or done.stderr:
        sys.exit(f'failed: {shell} on "{line}": {done.stderr or done.returncode}')
    words = done.stdout.split() if shell == 'zsh' else [word.strip() for word in done.stdout.splitlines()]
    # Some shells offer the values of a key or the last part of a list, others the whole word.
    before = re.match('(.*[=,])?', line.split(' ')[-1])[0]
    return [word.removeprefix(before) for word in words if word]


def main():
    shells = [s for s in ('bash', 'zsh', 'fish') if shutil.which(s)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in FILES.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        (folder / 'bin').mkdir()
        (folder / 'bin/dptrain').symlink_to(PROGRAM)
        for shell in ('bash', 'zsh', 'fish'):
            script = folder / f'.completion.{shell}'
            script.write_text(subprocess.run([PROGRAM, 'completion', shell], check=True, capture_output=True, text=True).stdout)
            if shell not in shells:
                print(f'skipped in part: no {shell}')
                continue
            subprocess.run([shell, '-n', str(script)], check=True)
            for line, wanted, unwanted in CASES:
                got = [word.rstrip('/') for word in offered(shell, str(script), line, folder)]
                for word in wanted:
                    if word not in got:
                        sys.exit(f'failed: {shell} completes "{line}" with {got}, not with {word}')
                for word in unwanted:
                    if word in got:
                        sys.exit(f'failed: {shell} completes "{line}" with {word}')
            for (line, wanted), got in zip(INSERTED, after_tab(shell, script, folder)):
                if got != wanted:
                    sys.exit(f'failed: {shell} makes "{got}" of "{line}", not "{wanted}"')
            print(f'{shell}: {len(CASES)} lines, and {len(INSERTED)} after TAB')


if __name__ == '__main__':
    main()
