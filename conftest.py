"""Lets pytest run in a plain checkout: where kvspec is not installed, finds its folders and loads its plugin.

An editable install does both by itself, and then nothing happens here.  Any other copy of kvspec in the environment
would be half used, half shadowed, so it ends the run.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent


def _installed() -> Path | None:
    """Where the environment has its ``kvspec.spec``, if it has one."""
    try:
        found = importlib.util.find_spec("kvspec.spec")
    except ModuleNotFoundError:
        return None
    return Path(found.origin).resolve().parents[1] if found and found.origin else None


def _register_namespace() -> None:
    """Make ``kvspec`` a namespace package over this checkout: ``kvspec.spec`` is ``spec``, and so on."""
    spec = importlib.machinery.ModuleSpec("kvspec", None, is_package=True)
    spec.submodule_search_locations = [str(ROOT)]
    sys.modules["kvspec"] = importlib.util.module_from_spec(spec)


INSTALLED = _installed()
if INSTALLED is None:
    _register_namespace()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugin, unless its entry point did: ``--impl`` must be known when the command line is read."""
    if not pluginmanager.has_plugin("kvspec"):
        plugin = "kvspec.conformance.plugin"
        pluginmanager.rewrite_hook.mark_rewrite(plugin)
        pluginmanager.register(importlib.import_module(plugin), "kvspec")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test this checkout's tests against another copy's code."""
    if INSTALLED not in (None, ROOT) and not config.option.pyargs:
        raise pytest.UsageError(
            f"another copy of kvspec is installed in {INSTALLED}; "
            f"'pip uninstall kvspec' or 'pip install -e .' first, so that this checkout is what is tested"
        )
