#!/usr/bin/env python3
"""Prints the layout of the sources: the largest folders, the longest files, how deep headers include each other,
and the slowest test cases of the last run of tools/test.sh.

Usage: tools/structure.py [--count N]      N lines of each (10)

A folder's files are those directly in it. Its include levels are the longest chain of its headers that include one
another."""

import argparse
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
SOURCES = ('.cpp', '.h', '.cu')


def files_below(root):
    """Paths relative to root, of sources."""
    out = []
    for folder, _, names in os.walk(os.path.join(ROOT, root)):
        inside = os.path.relpath(folder, os.path.join(ROOT, root))
        out += [os.path.normpath(os.path.join(inside, n)) for n in names if n.endswith(SOURCES)]
    return sorted(out)


def read(root, name):
    with open(os.path.join(ROOT, root, name), encoding='utf-8') as f:
        return f.read()


def longest_chain(edges, nodes):
    """The longest chain of these headers that include one another."""
    best = {}

    def chain(node):
        if node not in best:
            best[node] = [node] + max((chain(n) for n in sorted(edges[node] & nodes)), key=len, default=[])
        return best[node]

    return max((chain(n) for n in sorted(nodes)), key=len, default=[])


def slowest_cases():
    """(seconds, case, build) of the last runs."""
    out = []
    logs = 'meson-logs/testlog.txt'
    for log in glob.glob(f'{ROOT}/build/{logs}') + sorted(glob.glob(f'{ROOT}/build-test/*/{logs}')):
        build = os.path.relpath(log, ROOT).removesuffix('/' + logs)
        with open(log, encoding='utf-8', errors='replace') as f:
            out += [(float(m[1]), m[2], build) for m in re.finditer(r'(?m)^slow: ([\d.]+) s  (.*)$', f.read())]
    return sorted(out, reverse=True)


def table(title, rows):
    print(title)
    for row in rows or [('none',)]:
        print('  ' + '  '.join(f'{cell:>6}' if isinstance(cell, (int, float)) else str(cell) for cell in row))
    print()


def main():
    parser = argparse.ArgumentParser(description='Prints how the sources are laid out.')
    parser.add_argument('--count', type=int, default=10, help='lines of each table')
    count = parser.parse_args().count

    sizes, lines = {}, []
    for root in ('src', 'tests'):
        for name in files_below(root):
            folder = os.path.join(root, os.path.dirname(name))
            n = read(root, name).count('\n')
            files, total = sizes.get(folder, (0, 0))
            sizes[folder] = (files + 1, total + n)
            lines.append((n, os.path.join(root, name)))
    table('Largest folders: files, lines',
          [(f, n, folder) for f, n, folder in sorted(((*v, k) for k, v in sizes.items()), reverse=True)[:count]])
    table('Longest files: lines', sorted(lines, reverse=True)[:count])

    edges = {name: set(re.findall(r'(?m)^#include "(.*)"', read('src', name))) - {name}
             for name in files_below('src') if name.endswith('.h')}
    folders = {}
    for header in edges:
        folders.setdefault(os.path.dirname(header), set()).add(header)
    levels = [(longest_chain(edges, headers), len(headers), folder) for folder, headers in folders.items()]
    levels.sort(key=lambda row: (-len(row[0]), row[2]))
    table('Include levels of the headers of a folder: levels, headers',
          [(len(chain), n, f'src/{folder}', ' > '.join(os.path.basename(h) for h in chain))
           for chain, n, folder in levels[:count]])
    chain = longest_chain(edges, set(edges))
    table('Include levels of all headers: levels', [(len(chain), ' > '.join(chain))])
    table('Slowest test cases: seconds', slowest_cases()[:count])


if __name__ == '__main__':
    main()
