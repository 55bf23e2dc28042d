"""Completes command lines with the scripts that dptrain prints, in the shells that this machine has.

    completion.py DPTRAIN
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]

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
    ('dptrain runs ', ['folder'], []),
]

BASH = r'''
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
compopt() { :; }
_dptrain
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


def offered(shell, script, line, folder):
    program = {'bash': ['bash', '--norc', '-c', BASH, 'bash'], 'fish': ['fish', '--no-config', '-c', FISH],
               'zsh': ['zsh', '-f', '-c', ZSH, 'zsh']}[shell]
    done = subprocess.run([*program, script, line], cwd=folder, capture_output=True, text=True,
                          env={'PATH': '/usr/bin:/bin', 'HOME': str(folder), 'TERM': 'dumb', 'LC_ALL': 'C.UTF-8'})
    if done.returncode != 0 or done.stderr:
        sys.exit(f'failed: {shell} on "{line}": {done.stderr or done.returncode}')
    key = line.split()[-1].partition('=')[0] + '='
    if shell == 'zsh':
        return done.stdout.split()
    # bash offers the values of a key, fish the key with them.
    return [word.strip().removeprefix(key) or key for word in done.stdout.splitlines()]


def main():
    shells = [s for s in ('bash', 'zsh', 'fish') if shutil.which(s)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file in ('my.yaml', 'notes.txt', 'folder/x'):
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text('')
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
            print(f'{shell}: {len(CASES)} lines')


if __name__ == '__main__':
    main()
