#!/usr/bin/env python3
"""Makes compilation units that hold several source files each.

Most of a file's compile time goes to its headers, which a unit parses and instantiates only once. This is for
one-time builds (meson's option folder_units): after a change, a whole unit is compiled again.

Every name has the same meaning in a unit as in the file. A name that a file declares for itself, in an unnamed
namespace or as an alias, gets the file's name behind it if other files of the unit, or their headers, have that name,
too: infer_in_split. It cannot if the file also has a member of that name. Then the files are in separate units.

Usage: tools/units.py --group FILE...       prints a line for each unit: its files, separated by tabs
       tools/units.py --write UNIT FILE...  writes the unit of these files, and UNIT.d, which names what it depends on
"""

import collections
import os
import re
import sys

MOST_FILES = 40
MOST_LINES = 4500  # so that the last one to be compiled does not take long
# What may stand where a function's name does.
NO_NAMES = {'TEST_CASE', 'TEST_CASE_TEMPLATE', 'TYPE_TO_STRING', 'static_assert', 'alignas', 'catch', 'decltype',
            'noexcept'}
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
# Comments and literals, which are not code. A quote between two digits separates them and begins no literal.
LITERAL = (r'(R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/)')


def pieces(text):
    """Pairs of a piece of the text, and whether it is code."""
    parts = re.split(LITERAL, text, flags=re.S)
    for i, part in enumerate(parts):
        if i % 3 < 2 and part:
            yield part, i % 3 == 0


def plain(text):
    """Without comments, literals and directives."""
    blank = {'"': '""', 'R': '""', "'": '0', '/': ''}
    text = ''.join(p if code else blank[p[0]] for p, code in pieces(text))
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


def declarations(text):
    """Names that a plain text declares: those for itself, and other ones of namespaces."""
    own, public = set(), set()
    scopes, statement = [], ''  # a scope: 'unnamed', 'named', or '' for anything but a namespace
    for token in re.findall(r'[{};]|[^{};]+', text):
        outside = all(scopes)
        if token not in '{};':
            statement += token if outside else ''
            continue
        if outside:
            alone = 'unnamed' in scopes or re.match(r'\s*(static|const|constexpr|using|namespace)\b', statement)
            (own if alone else public).update(declared(statement) - NO_NAMES)
        if token == '{':
            head = re.search(r'\bnamespace\b([\s\w:]*)$', statement) if outside else None
            scopes.append(('named' if head[1].strip() else 'unnamed') if head else '')
            statement = '' if head else statement + '{}' if outside else statement
        elif token == '}' and scopes:
            if scopes.pop() or all(scopes) and re.search(r'\)[^=]*\{\}\s*$', statement):
                statement = ''
        elif token == ';' and outside:
            statement = ''
    return {n for n in own if len(n) > 1}, public


def members(text):
    """Names behind '.', '->' and '::', but not those of designated initializers, as in {.infer = infer}."""
    found = re.findall(r'([{,(]?)\s*(->|::|\.)\s*(\w+)', text)
    return {name for before, mark, name in found if mark != '.' or not before}


class File:
    """own: names declared for itself; free: those of them that the unit may change; public: other ones of namespaces;
    used: all but members."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as f:
            self.text = f.read()
        self.path, self.lines, self.headers = path, self.text.count('\n'), set()
        self.includes = re.findall(r'(?m)^#include "(.*)"', self.text)
        text = plain(self.text)
        self.own, self.public = declarations(text)
        # All names of that namespace would be in the unit's other files, too.
        self.alone = bool(re.search(r'\busing namespace (?!std\b)', text))
        self.used = set(re.findall(r'(?<![\w.:])[A-Za-z_]\w*', text))
        self.free = self.own - members(text)


class Unit:
    """Several files. fixed: names of theirs that stay as they are, declared for one file; taken: those used."""

    def __init__(self, file):
        self.files, self.lines, self.headers = [file], file.lines, set(file.headers)
        self.fixed, self.taken = file.own - file.free, file.used - file.free
        self.alone = file.alone

    def add(self, other):
        self.files += other.files
        self.lines += other.lines
        for mine, its in ((self.fixed, other.fixed), (self.taken, other.taken), (self.headers, other.headers)):
            mine |= its


class Headers:
    """What the project's headers declare, each read once."""

    def __init__(self):
        self.files = {}

    def closure(self, file, seen):
        """Adds to seen all headers that the file includes, by way of others as well."""
        for name in file.includes:
            for folder in (os.path.dirname(file.path), os.path.join(ROOT, 'src'), os.path.join(ROOT, 'tests')):
                path = os.path.normpath(os.path.join(folder, name))
                if path in seen:
                    break
                if os.path.exists(path):
                    seen.add(path)
                    if path not in self.files:
                        self.files[path] = File(path)
                    self.closure(self.files[path], seen)
                    break
        return seen

    def names(self, paths):
        return set().union(*(self.files[p].own | self.files[p].public for p in paths))

    def clash(self, a, b):
        """Whether a declares for itself, and cannot change, what b means something else by."""
        return bool(a.alone or a.fixed & b.taken or a.fixed & self.names(b.headers - a.headers))


def read(paths, headers):
    out = [File(os.path.realpath(p)) for p in paths]
    for file in out:
        file.headers = headers.closure(file, set())
        # A method may call another by its bare name, which only its class declares.
        if header := headers.files.get(re.sub('cpp$', 'h', file.path)):
            file.free -= header.used
    return out


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


def group(paths):
    headers, by_folder = Headers(), collections.defaultdict(list)
    for file in read(paths, headers):
        by_folder[os.path.dirname(file.path)].append(Unit(file))
    # Files of a folder include the same headers; what is left over joins whatever has room.
    for unit in join([unit for inside in by_folder.values() for unit in join(inside, headers)], headers):
        # Relative to where meson calls this, so that two clones have equal commands.
        print('\t'.join(os.path.relpath(f.path) for f in unit.files))


def in_unit(file, names, folder):
    """The file's text with these names changed, and with includes that are right in the unit's folder."""
    def include(m):
        path = os.path.join(os.path.dirname(file.path), m[1])
        return f'#include "{os.path.relpath(path, folder)}"' if os.path.exists(path) else m[0]
    text = re.sub(r'(?m)^#include "(.*)"', include, file.text)
    if names:
        pattern = re.compile(r'(?<![\w.])(' + '|'.join(sorted(names)) + r')\b')
        text = ''.join(pattern.sub(lambda m: names[m[0]], p) if code else p for p, code in pieces(text))
    # From where the compiler runs, so that the units of two clones are equal, and ccache compiles them once.
    return f'#line 1 "{os.path.relpath(file.path)}"\n{text}\n'


def write(unit, paths):
    headers, out = Headers(), ''
    files = read(paths, headers)
    stem = lambda file: os.path.basename(file.path)[:-len('.cpp')]
    stems = collections.Counter(stem(f) for f in files)
    for file in files:
        others = [f for f in files if f is not file]
        taken = set().union(*(f.own | f.used | headers.names(f.headers - file.headers) for f in others))
        folder = os.path.basename(os.path.dirname(file.path)) + '_' if stems[stem(file)] > 1 else ''
        names = {n: f'{n}_in_{folder}{stem(file)}' for n in file.free & taken}
        out += in_unit(file, names, os.path.dirname(os.path.realpath(unit)))
    with open(unit, 'w', encoding='utf-8') as f:
        f.write(out)
    with open(unit + '.d', 'w', encoding='utf-8') as f:
        depends = sorted(set(paths).union(*(map(os.path.relpath, file.headers) for file in files)))
        f.write(f'{unit}: ' + ' '.join(p.replace(' ', '\\ ') for p in depends) + '\n')


if __name__ == '__main__':
    if sys.argv[1] == '--group':
        group(sys.argv[2:])
    else:
        write(sys.argv[2], sys.argv[3:])
