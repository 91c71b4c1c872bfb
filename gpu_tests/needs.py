"""What a test needs beyond NumPy: a missing library is reported by name, and only its own lanes are left out."""

import importlib.util

import pytest

TORCH = importlib.util.find_spec("torch") is not None
TRITON = importlib.util.find_spec("triton") is not None

torch = pytest.mark.skipif(not TORCH, reason="torch is not installed (extra: attention); the NumPy lanes ran")
triton = pytest.mark.skipif(not (TORCH and TRITON), reason="triton is not installed (extra: triton)")
