"""A C++ source file and its mutants, found by the layout that clang-format gives it."""
import bisect, collections, re

OPEN, CLOSE = '([{', ')]}'
KEYWORDS = set('''if for while do switch case default return const constexpr auto static using namespace struct class
  enum union template typename throw goto else try catch break continue public private protected friend unsigned signed
  int long short char bool float double void size_t sizeof alignas inline extern static_assert new delete'''.split())
SWAPPED = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&',
           '-': '+', '*': '+', '/': '*', '%': '*', '+': '-'}
RANK = {'||': 1, '&&': 2, '==': 5, '!=': 5, '<': 6, '>': 6, '<=': 6, '>=': 6, '+': 8, '-': 8, '*': 9, '/': 9, '%': 9}


def masked(text):
    """The text with comments, literals and preprocessor lines as blanks of the same length."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\])+\'|^[ \t]*#[^\n]*'
    literal = re.compile(pattern, re.S | re.M)

    def blank(m):
        fill = 's' if m[0][0] in '"\'R' else ' '  # a literal is an operand
        return re.sub(r'[^\n]', fill, m[0])
    return literal.sub(blank, text)


class Source:
    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        self.mask = masked(self.text)
        self.match, stack = {}, []
        for i, c in enumerate(self.mask):
            if c in OPEN:
                stack.append(i)
            elif c in CLOSE:
                at = stack.pop()
                self.match[i], self.match[at] = at, i
        self.lines = [0] + [m.end() for m in re.finditer('\n', self.text)]
        self.mutants = []
        for begin, end in self.bodies():
            self.statements(begin, end)
            self.operators(begin, end)
            self.conditions(begin, end)
            self.returns(begin, end)
            self.calls(begin, end)

    def add(self, kind, begin, end, alternative):
        if not self.in_constant(begin):
            self.mutants.append({'kind': kind, 'begin': begin, 'end': end, 'alternative': alternative})

    def in_constant(self, at):
        begin = max(self.mask.rfind(c, 0, at) for c in ';{}') + 1
        return re.match(r'\s*(static\s+)?(constexpr\b|static_assert|using\b|case\b)', self.mask[begin:at]) is not None

    def bodies(self):
        """Outermost braces behind a parameter list."""
        out, at, depth_end = [], 0, -1
        for i in sorted(self.match):
            if self.mask[i] != '{' or i < depth_end:
                continue
            head = self.mask[max(self.mask.rfind(c, 0, i) for c in ';{}') + 1:i]
            container = re.search(r'\b(namespace|struct|class|enum|union)\b', head) and ')' not in head
            if container or '(' not in head or 'constexpr' in head:
                continue
            out.append((i + 1, self.match[i]))
            depth_end = self.match[i]
        return out

    def statements(self, begin, end):
        for m in re.finditer(r'(?<![\w.>:])(\+\+|--|\*)?[A-Za-z_]\w*', self.mask[begin:end]):
            at = begin + m.start()
            before = self.mask[:at].rstrip()
            word = m[0].lstrip('+-*')
            if before[-1] == ')':
                head = self.mask[:self.match[len(before) - 1]].rstrip()
                if not re.search(r'\b(if|for|while|switch)$', head):
                    continue
            elif before[-1] not in ';{}' and not re.search(r'\belse$|\b(case [\w:]+|default):$', before):
                continue
            if word in ('break', 'continue') or (word == 'return' and self.mask[at + 6] == ';'):
                self.add('removed', at, self.mask.index(';', at) + 1, ';')
                continue
            if word in KEYWORDS:
                continue
            i = at + len(m[0])
            called = False
            while True:  # a.b(c)->d[e]
                tail = re.compile(r'(\.|->|::)\w+|<[\w:, ]+>(?=\(|::)').match(self.mask, i)
                if tail:
                    i = tail.end()
                elif self.mask[i] in '([':
                    called |= self.mask[i] == '('
                    i = self.match[i] + 1
                else:
                    break
            if not (re.match(r'\s*;', self.mask[i:]) and (called or m[1] or self.mask[i - 1] == '+')
                    or re.match(r'(\+\+|--)\s*;|\s*([-+*/|&^%]|<<|>>)?=(?!=)', self.mask[i:])):
                continue
            while self.mask[i] != ';' and self.mask[i] not in CLOSE:
                i = self.match[i] + 1 if self.mask[i] in OPEN else i + 1
            if self.mask[i] == ';':
                self.add('removed', at, i + 1, ';')

    def operand(self, at, rank, step):
        """Where the operand left (step -1) or right (+1) of position `at` ends."""
        i = at
        stop = re.compile(r' (\|\||&&|==|!=|<=|>=|<|>|[-+*/%]|<<|>>|\?|:|[-+*/|&^%]?=) ')
        while True:
            c = self.mask[i]
            if c in (CLOSE if step < 0 else OPEN):
                statement = c == '}' and not re.match(r'[\w>]', self.mask[self.match[i] - 1])
                if statement:
                    return i + 1
                i = self.match[i] + step
                continue
            if c in OPEN + CLOSE + ';,':
                return i + 1 if step < 0 else i
            if c == ' ' or c == '\n':
                found = stop.match(re.sub(r'\s', ' ', self.mask[i - 3:i + 1] if step < 0 else self.mask[i:i + 4]))
                for length in (1, 2):
                    span = (i - length - 1, i + 1) if step < 0 else (i, i + length + 2)
                    text = re.sub(r'\s', ' ', self.mask[slice(*span)])
                    found = found or stop.fullmatch(text)
                if found and RANK.get(found[1], 0) < rank + (step > 0):
                    return i + 1 if step < 0 else i
                if step < 0 and re.search(r'\b(return|else|case|throw)$', self.mask[max(0, i - 7):i]):
                    return i + 1
            i += step

    def operators(self, begin, end):
        for m in re.finditer(r'(?<=[ \n])(<=|>=|==|!=|<|>|&&|\|\||[-+*/%])(?=[ \n])', self.mask[begin:end]):
            at, op = begin + m.start(), m[0]
            left, right = self.operand(at - 2, RANK[op], -1), self.operand(at + len(op) + 1, RANK[op], 1)
            while self.mask[left] in ' \n':
                left += 1
            if op == '+' and 's' * 2 in self.mask[left:right]:
                continue  # texts
            text = self.flat(left, at) + SWAPPED[op] + self.flat(at + len(op), right)
            self.add('operator', left, right, text)
        for m in re.finditer(r'(?<=[-+] )1(?=[;,)\] ])', self.mask[begin:end]):
            self.add('one', begin + m.start(), begin + m.end(), '0')

    def conditions(self, begin, end):
        for m in re.finditer(r'\b(if|while) \(', self.mask[begin:end]):
            at, close = begin + m.end(), self.match[begin + m.end() - 1]
            at = max(at, self.mask.rfind(';', at, close) + 1)
            inner = self.mask[at:close]
            one = len(re.findall(r' (==|!=|&&|\|\|) ', inner)) == 1 and '&&' not in inner and '||' not in inner
            if not one and not re.search(r'[^=!<>]=[^=]', re.sub(r'\{.*\}|\[.*\]', '', inner, flags=re.S)):
                self.add('negated', at, close, f'!({self.flat(at, close)})')

    def returns(self, begin, end):
        for m in re.finditer(r'\breturn (?!\{)', self.mask[begin:end]):
            at = i = begin + m.end()
            while self.mask[i] != ';':
                i = self.match[i] + 1 if self.mask[i] in OPEN else i + 1
            self.add('returned', at, i, f'mutant_value({self.flat(at, i)})')

    def calls(self, begin, end):
        for m in re.finditer(r'(?:\b(?:std::)?(min|max)(<[\w:]+>)?)\(', self.mask[begin:end]):
            at, close = begin + m.start(), self.match[begin + m.end() - 1]
            other = {'min': 'max', 'max': 'min'}[m[1]]
            self.add('minmax', at, close + 1, re.sub(m[1], other, self.flat(at, close + 1), count=1))
        for m in re.finditer(r'\b([A-Za-z_]\w*)\(', self.mask[begin:end]):
            if m[1] in KEYWORDS or m[1] in ('min', 'max', 'equivalent'):
                continue
            open_, close = begin + m.end() - 1, self.match[begin + m.end() - 1]
            commas, i = [], open_ + 1
            while i < close:
                if self.mask[i] == ',':
                    commas.append(i)
                i = self.match[i] + 1 if self.mask[i] in OPEN else i + 1
            if len(commas) == 1:
                first, second = (open_ + 1, commas[0]), (commas[0] + 2, close)
                texts = self.flat(*first).strip(), self.flat(*second).strip()
                if texts[0] != texts[1] and 'memory_order' not in ''.join(texts):
                    self.mutants.append({'kind': 'swapped', 'begin': open_ + 1, 'end': close, 'alternative': '',
                                         'parts': [first, second]})

    def flat(self, begin, end):
        """The original text in one line, without comments."""
        text = self.text[begin:end]
        if '//' in self.text[begin:end]:
            text = ''.join(t if m != ' ' else ' ' for t, m in zip(text, self.mask[begin:end]))
        return text.replace('\n', ' ')

    def line(self, at):
        return bisect.bisect_right(self.lines, at)

    def rendered(self, live):
        """The source with the mutants whose numbers are in `live`."""
        edits = []  # begin, end, prefix, suffix
        for m in self.mutants:
            if m['id'] not in live:
                continue
            on, b, e = f'mutant_on({m["id"]})', m['begin'], m['end']
            if m['kind'] == 'removed':
                edits.append((b, e, f'{{ if (!{on}) {{ ', ' } }'))
            elif m['kind'] == 'swapped':
                one, two = m['parts']
                edits.append((*one, f'({on} ? ({self.flat(*two)}) : (', '))'))
                edits.append((*two, f'({on} ? ({self.flat(*one)}) : (', '))'))
            elif m['kind'] == 'returned':  # not `?:`, which would copy what is returned by reference
                edits.append((b - len('return '), e + 1, f'{{ if ({on}) return {m["alternative"]}; ', ' }'))
            elif m['kind'] == 'negated':
                edits.append((b, e, f'{on} != static_cast<bool>(', ')'))
            else:
                edits.append((b, e, f'({on} ? ({m["alternative"]}) : (', '))'))
        opened, closed = collections.defaultdict(list), collections.defaultdict(list)
        for b, e, prefix, suffix in sorted(edits, key=lambda x: (x[0], -x[1])):
            opened[b].append(prefix)
            closed[e].insert(0, suffix)
        out = []
        for i, c in enumerate(self.text):
            out += closed.get(i, []) + opened.get(i, []) + [c]
        # A header for the system: no compiler warns of what stands in it.
        return '#pragma GCC system_header\n#include "mutant_control.h"\n#line 1\n' + ''.join(out)
