#!/usr/bin/env python3
"""Writes a C++ file with the templates of exported programs (src/export/template.h).

Usage: embed_templates.py OUTPUT TEMPLATE...
"""

import sys
from pathlib import Path

END = "template"  # of a raw string: )template"


def literal(text):
    assert f"){END}\"" not in text, "a template contains the end of a raw string"
    return f'R"{END}({text}){END}"'


def main():
    output, *templates = (Path(name) for name in sys.argv[1:])
    rows = "".join(
        f'    {{"{path.name.removesuffix(".py.in")}", {literal(path.read_text(encoding="utf-8"))}}},\n'
        for path in sorted(templates)
    )
    output.write_text(
        "// Made from src/export/templates.\n"
        '#include <string>\n#include <string_view>\n#include <utility>\n\n'
        '#include "base/error.h"\n#include "export/template.h"\n\n'
        "namespace dpt {\nnamespace {\n\n"
        "constexpr std::pair<std::string_view, std::string_view> kTemplates[] = {\n"
        f"{rows}}};\n\n}}  // namespace\n\n"
        "std::string_view torch_template(std::string_view name) {\n"
        "  for (const auto& [known, text] : kTemplates)\n    if (known == name) return text;\n"
        '  require(false, "no template has the name " + std::string(name));\n'
        "  return {};\n}\n\n}  // namespace dpt\n",
        encoding="utf-8",
    )


main()
