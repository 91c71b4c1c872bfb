"""What engines that are built on PyTorch need: one thread, and memory that is not pinned where there is no accelerator."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from kvspec.impl.errors import LoadError


def need_torch(engine: str) -> None:
    """PyTorch, with one thread: more make small tensors slower.  Raises LoadError."""
    if importlib.util.find_spec("torch") is None:
        raise LoadError(f"{engine} needs PyTorch, which is not installed: `pip install torch`; a CPU is enough.")
    import torch

    torch.set_num_threads(1)


@contextmanager
def without_pinning() -> Iterator[None]:
    """Memory is not pinned in here: without an accelerator PyTorch cannot pin it."""
    import torch

    empty = torch.empty

    def pageable(*size: Any, pin_memory: bool = False, **named: Any) -> Any:
        return empty(*size, **named)

    def itself(tensor: Any) -> Any:
        return tensor

    with patch.object(torch, "empty", pageable), patch.object(torch.Tensor, "pin_memory", itself):
        yield
