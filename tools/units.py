#!/usr/bin/env python3
"""Groups source files into compilation units, each of which includes several files.

Most of a file's compile time goes to its headers, which a unit parses and instantiates only once. This is for
one-time builds (meson's option folder_units): after a change, a whole unit is compiled again.

Two files share a unit if none declares a name for itself, in an unnamed namespace or as an alias, that the other
uses or that a header of the other alone declares. So every name has the same meaning in the unit as in the file.

Usage: tools/units.py FOLDER PREFIX FILE...
Writes FOLDER/PREFIX_N.cpp and prints these paths."""

import os
import re
import sys

MOST_FILES = 40
MOST_LINES = 4500  # so that the last one to be compiled does not take long
MACROS = {'TEST_CASE', 'TEST_CASE_TEMPLATE', 'TYPE_TO_STRING', 'static_assert'}
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def plain(text):
    """Without comments, literals and directives."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", '', text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
                  lambda m: '""' if m[0][0] == '"' else '0' if m[0][0] == "'" else '', text, flags=re.S)
    return re.sub(r'(?m)^#(?:.*\\\n)*.*$', '', text)


def declared(statement):
    """Names that a statement outside of functions declares."""
    statement = re.sub(r'^template\s*<[^{}()]*>\s*(?=\w)', '', statement.strip())
    if alias := re.match(r'(?:using|namespace) (\w+) *=', statement):
        return {alias[1]}
    if not statement or re.match(r'(?:inline\s+)?namespace\b|using\b', statement):
        return set()
    if kind := re.match(r'(?:struct|class|enum class|enum|union)\s+(?:alignas\([^)]*\)\s*)?(\w+)', statement):
        return {kind[1]}
    if function := re.match(r'[^()=]*?([\w:~]+)\s*\(', statement):
        return set() if '::' in function[1] else {function[1]}
    bare = re.sub(r'<[^<>]*>|\{[^}]*\}|\([^()]*\)|\[[^\]]*\]', '', statement)
    return {m[1] for part in bare.split(',') if (m := re.search(r'(\w+)\s*(?:=.*)?$', part, re.S))}


class Unit:
    """One file, or several. own: names declared for itself; public: other ones of namespaces; used: all but members."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        self.files, self.lines, self.headers = [path], text.count('\n'), set()
        self.includes = re.findall(r'(?m)^#include "(.*)"', text)
        text = plain(text)
        self.own, self.public = set(), set()
        self.used = set(re.findall(r'(?<![\w.:])[A-Za-z_]\w*', text))
        scopes, statement = [], ''  # a scope: 'unnamed', 'named', or '' for anything but a namespace
        for token in re.findall(r'[{};]|[^{};]+', text):
            outside = all(scopes)
            if token not in '{};':
                statement += token if outside else ''
                continue
            if outside:
                alone = 'unnamed' in scopes or re.match(r'\s*(static|const|constexpr|using|namespace)\b', statement)
                (self.own if alone else self.public).update(declared(statement) - MACROS)
            if token == '{':
                head = re.search(r'\bnamespace\b([\s\w:]*)$', statement) if outside else None
                scopes.append(('named' if head[1].strip() else 'unnamed') if head else '')
                statement = '' if head else statement + '{}' if outside else statement
            elif token == '}' and scopes:
                if scopes.pop() or all(scopes) and re.search(r'\)[^=]*\{\}\s*$', statement):
                    statement = ''
            elif token == ';' and outside:
                statement = ''
        self.own = {n for n in self.own if len(n) > 1}

    def add(self, other):
        self.files += other.files
        self.lines += other.lines
        for mine, its in ((self.own, other.own), (self.used, other.used), (self.headers, other.headers)):
            mine |= its


class Headers:
    """What the project's headers declare, each read once."""

    def __init__(self):
        self.units = {}

    def closure(self, unit, seen):
        """Adds to seen all headers that the unit's file includes, by way of others as well."""
        for name in unit.includes:
            for folder in (os.path.dirname(unit.files[0]), os.path.join(ROOT, 'src'), os.path.join(ROOT, 'tests')):
                path = os.path.normpath(os.path.join(folder, name))
                if path in seen:
                    break
                if os.path.exists(path):
                    seen.add(path)
                    if path not in self.units:
                        self.units[path] = Unit(path)
                    self.closure(self.units[path], seen)
                    break
        return seen

    def names(self, paths):
        return set().union(*(self.units[p].own | self.units[p].public for p in paths))

    def clash(self, a, b):
        """Whether a declares for itself what b means something else by."""
        return bool(a.own & b.used or a.own & self.names(b.headers - a.headers))


def join(units, headers):
    """First fit: each unit goes to the first that it may share."""
    out = []
    for unit in units:
        for other in out:
            fits = len(other.files) + len(unit.files) <= MOST_FILES and other.lines + unit.lines <= MOST_LINES
            if fits and not headers.clash(unit, other) and not headers.clash(other, unit):
                other.add(unit)
                break
        else:
            out.append(unit)
    return out


def main():
    folder, prefix, files = sys.argv[1], sys.argv[2], [os.path.realpath(f) for f in sys.argv[3:]]
    headers, by_folder = Headers(), {}
    for f in files:
        unit = Unit(f)
        unit.headers = headers.closure(unit, set())
        by_folder.setdefault(os.path.dirname(f), []).append(unit)
    # Files of a folder include the same headers; what is left over joins whatever has room.
    units = join([unit for inside in by_folder.values() for unit in join(inside, headers)], headers)
    for i, unit in enumerate(units):
        # From the unit's folder, so that the units of two clones are equal, and ccache compiles them once.
        text = ''.join(f'#include "{os.path.relpath(f, os.path.realpath(folder))}"\n' for f in unit.files)
        path = os.path.join(folder, f'{prefix}_{i}.cpp')
        if not os.path.exists(path) or open(path, encoding='utf-8').read() != text:
            with open(path, 'w', encoding='utf-8') as out:
                out.write(text)
        print(path)


if __name__ == '__main__':
    main()
