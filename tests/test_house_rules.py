"""The rules that a reader relies on: who may import whom, how long functions are, what is never left behind."""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {folder: sorted((ROOT / folder).rglob("*.py")) for folder in ("spec", "impl", "conformance", "gpu_tests")}
EXECUTABLE_SPEC = sorted((ROOT / "spec").glob("*.py"))
SPEC_PROOFS = sorted((ROOT / "spec" / "proofs").rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=name(path))


# --- arrows point one way -------------------------------------------------------------------------------------------


def imported(path: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything that a module imports, wherever in it the import is."""
    package = ("kvspec", *path.relative_to(ROOT).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *((node.module,) if node.module else ())))
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def own(module: str) -> bool:
    return within(module, "kvspec")


def standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names | {"__future__"}


def breaches(paths: list[Path], allowed) -> list[str]:
    return [
        f"{name(path)}:{line} imports {module}"
        for path in paths
        for line, module in imported(path, parse(path))
        if not allowed(module)
    ]


def test_the_import_reader_sees_every_form() -> None:
    source = "import a.b\nfrom . import c\nfrom ..d import e\nfrom kvspec import conformance\ndef f():\n    import z3\n"
    found = [module for _, module in imported(ROOT / "spec" / "proofs" / "x.py", ast.parse(source))]
    assert sorted(found) == sorted(
        ["a.b", "kvspec.spec.proofs.c", "kvspec.spec.d.e", "kvspec.conformance", "z3"],
    )


def test_spec_imports_the_standard_library_and_itself() -> None:
    assert not breaches(EXECUTABLE_SPEC, lambda module: standard(module) or within(module, "kvspec.spec"))


def test_only_the_proofs_import_solvers() -> None:
    allowed = ("kvspec.spec", "z3", "cvc5", "crosshair", "hypothesis", "rich")
    assert not breaches(SPEC_PROOFS, lambda module: standard(module) or within(module, *allowed))


def test_executable_spec_does_not_import_its_proofs() -> None:
    assert not breaches(EXECUTABLE_SPEC, lambda module: not within(module, "kvspec.spec.proofs"))


def test_impl_imports_only_spec_of_this_project() -> None:
    assert not breaches(SOURCES["impl"], lambda module: not own(module) or within(module, "kvspec.spec", "kvspec.impl"))


def test_conformance_does_not_import_gpu_tests() -> None:
    assert not breaches(SOURCES["conformance"], lambda module: not within(module, "kvspec.gpu_tests", "gpu_tests"))


def test_gpu_tests_import_impl_and_spec_of_this_project() -> None:
    allowed = ("kvspec.gpu_tests", "kvspec.impl", "kvspec.spec", "kvspec.conformance.plugin")
    assert not breaches(SOURCES["gpu_tests"], lambda module: not own(module) or within(module, *allowed))


def test_folders_have_one_name() -> None:
    everywhere = [path for paths in SOURCES.values() for path in paths]
    assert not breaches(everywhere, lambda module: not within(module, *SOURCES))


# --- what a port has to do without ----------------------------------------------------------------------------------

IMPURE = ("os", "sys", "io", "pathlib", "random", "secrets", "time", "datetime", "socket", "subprocess", "threading")


def test_executable_spec_has_no_io_clock_or_randomness() -> None:
    assert not breaches(EXECUTABLE_SPEC, lambda module: not within(module, *IMPURE))
    calls = [
        f"{name(path)}:{node.lineno} calls {node.func.id}"
        for path in EXECUTABLE_SPEC
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input", "exec", "eval", "__import__"}
    ]
    assert not calls


# --- sizes ----------------------------------------------------------------------------------------------------------

Function = ast.FunctionDef | ast.AsyncFunctionDef
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def docstring(node: ast.AST) -> ast.stmt | None:
    first = node.body[0] if getattr(node, "body", None) else None
    constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first if constant and isinstance(first.value.value, str) else None


def code_lines(source: str) -> set[int]:
    """The lines that hold code: no blank ones, no comments, no docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for token in tokens if token.type not in NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := docstring(node)):
            lines -= set(range(text.lineno, text.end_lineno + 1))
    return lines


def body_size(function: Function, code: set[int]) -> int:
    """Lines of code in the body; the signature, the docstring, comments and blank lines are not counted."""
    body = function.body[1:] if docstring(function) else function.body
    return len({line for statement in body for line in range(statement.lineno, statement.end_lineno + 1)} & code)


def body_sizes(paths: list[Path]) -> dict[str, int]:
    sizes = {}
    for path in paths:
        code = code_lines(path.read_text(encoding="utf-8"))
        for node in ast.walk(parse(path)):
            if isinstance(node, Function):
                sizes[f"{name(path)}:{node.lineno} {node.name}"] = body_size(node, code)
    return sizes


def test_the_counter_counts_code_only() -> None:
    signature, text = "def f(a,\n      b):", '"""Doc."""'
    source = f'"""Doc\nstring."""\n\n# comment\n{signature}\n    {text}\n\n    # why\n    return (a +\n            b)\n'
    assert code_lines(source) == {5, 6, 10, 11}
    (function,) = ast.parse(source).body[1:]
    assert body_size(function, code_lines(source)) == 2


def test_no_function_of_the_spec_is_long() -> None:
    sizes = body_sizes(SOURCES["spec"])
    assert len(sizes) > 20
    assert not {where: size for where, size in sizes.items() if size > 25}


@pytest.mark.parametrize("paths", [EXECUTABLE_SPEC, SPEC_PROOFS], ids=["spec", "proofs"])
def test_functions_of_the_spec_are_short(paths: list[Path]) -> None:
    sizes = body_sizes(paths)
    assert statistics.median(sizes.values()) <= 7, sizes


RULES = ("spec/steps.py", "spec/judge.py", "spec/invariants.py")
EXTENSIONS = (
    "spec/extensions.py",
    "spec/extension_rules.py",
    "spec/model_extensions.py",
    "spec/namespaces.py",
    "spec/tree_caches.py",
)


def test_the_rules_can_be_read_in_one_sitting() -> None:
    """What a porter must re-implement; nouns, verbs, registry and model are data or a second reading of it."""
    sizes = {name(path): len(code_lines(path.read_text(encoding="utf-8"))) for path in EXECUTABLE_SPEC}
    extensions = {path: sizes.pop(path) for path in EXTENSIONS if path in sizes}
    assert 200 < sum(sizes[path] for path in RULES) <= 720, sizes
    assert sum(sizes.values()) <= 1500, sizes
    assert max(sizes.values()) <= 470, sizes
    assert 50 < sum(extensions.values()) <= 350, extensions


# --- leftovers ------------------------------------------------------------------------------------------------------

LEFTOVERS = re.compile(
    "|".join(
        [
            r"(?<![\w.])/wo" + r"rk/",
            "/tmp/" + "venv",
            r"(?<![\w.])/ro" + r"ot/",
            r"\bTO" + r"DO\b",
            r"\bFIX" + r"ME\b",
            r"^<{7} |^>{7} ",
        ]
    ),
    re.MULTILINE,
)


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / entry for entry in listed.split("\0") if entry]


def test_no_leftovers_in_tracked_files() -> None:
    found = []
    for path in tracked():
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [
            f"{name(path)}:{text.count(chr(10), 0, hit.start()) + 1} {hit[0]!r}" for hit in LEFTOVERS.finditer(text)
        ]
    assert not found


def test_no_generated_files_are_tracked() -> None:
    generated = re.compile(r"(^|/)(__pycache__|\.hypothesis|build|dist|[^/]+\.egg-info)(/|$)|\.py[co]$")
    assert not [name(path) for path in tracked() if generated.search(name(path))]
