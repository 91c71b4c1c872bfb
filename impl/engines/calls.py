"""Calling functions whose parameters differ between releases of an engine."""

import inspect
from collections.abc import Callable
from typing import Any


def call_known(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call with those of the `named` arguments that the function knows."""
    known = inspect.signature(function).parameters
    return function(*arguments, **{name: value for name, value in named.items() if name in known})


def takes(function: Callable[..., Any], parameter: str) -> bool:
    """Has the function a parameter of that name?"""
    return parameter in inspect.signature(function).parameters
