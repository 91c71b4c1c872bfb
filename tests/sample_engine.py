"""A small engine in nano-vllm's manner around a manager of the late or the early shape, without any model."""

from __future__ import annotations

import random
from collections import deque
from enum import Enum, auto
from typing import Any

from kvspec.impl.sequence import Sequence


class Status(Enum):
    """As in nano-vllm."""

    WAITING = auto()
    RUNNING = auto()
    FINISHED = auto()


class Engine:
    """The order of calls of nano-vllm's scheduler: prefill (the first prompt in chunks), else decode with preemption."""

    def __init__(self, manager: Any, budget: int = 64, most: int = 8) -> None:
        self.manager, self.budget, self.most = manager, budget, most
        self.late = hasattr(manager, "hash_blocks") and manager.hash_blocks is not None
        self.sized = type("Sized", (Sequence,), {"block_size": manager.block_size})
        self.waiting: deque[Any] = deque()
        self.running: deque[Any] = deque()

    def add(self, tokens: list[int], wanted: int) -> None:
        """A request for `wanted` more tokens."""
        sequence = self.sized(tokens)
        sequence.wanted, sequence.status = len(tokens) + wanted, Status.WAITING
        self.waiting.append(sequence)

    def step(self, token: Any) -> None:
        """Schedule, compute, sample with `token()`."""
        planned = self._prefill() or self._decode()
        for sequence in planned:
            self._finish(sequence, token())

    def _prefill(self) -> list[Any]:
        planned, left = [], self.budget
        while self.waiting and len(self.running) < self.most and left:
            sequence = self.waiting[0]
            admitted = sequence.block_table or self._admitted(sequence)
            if not admitted:
                break
            count = min(left, len(sequence) - sequence.num_cached_tokens) if self.late else len(sequence)
            sequence.num_scheduled_tokens = count
            left = max(0, left - count)
            planned.append(sequence)
            if not self.late or sequence.num_cached_tokens + count == len(sequence):
                sequence.status = Status.RUNNING
                self.running.append(self.waiting.popleft())
        return planned

    def _admitted(self, sequence: Any) -> bool:
        found = self.manager.can_allocate(sequence)
        if found is False or (self.late and found == -1):
            return False
        self.manager.allocate(sequence, found) if self.late else self.manager.allocate(sequence)
        return True

    def _decode(self) -> list[Any]:
        planned = []
        while self.running:
            sequence = self.running.popleft()
            while not self.manager.can_append(sequence):
                if not self.running:
                    self._preempt(sequence)
                    break
                self._preempt(self.running.pop())
            else:
                sequence.num_scheduled_tokens = 1
                self.manager.may_append(sequence)
                planned.append(sequence)
        self.running.extend(planned)
        return planned

    def _preempt(self, sequence: Any) -> None:
        sequence.status = Status.WAITING
        self.manager.deallocate(sequence)
        self.waiting.appendleft(sequence)

    def _finish(self, sequence: Any, token: int) -> None:
        if self.late:
            self.manager.hash_blocks(sequence)
            sequence.num_cached_tokens += sequence.num_scheduled_tokens
            if sequence.num_cached_tokens < len(sequence):
                return
        sequence.append_token(token)
        if len(sequence) >= sequence.wanted:
            sequence.status = Status.FINISHED
            self.manager.deallocate(sequence)
            self.running.remove(sequence)


def run(manager: Any, steps: int, seed: int = 1, alphabet: int = 2, longest: int = 20, **sizes: int) -> Engine:
    """Random requests with prefixes in common, for so many steps."""
    draw, engine, prompts = random.Random(seed), Engine(manager, **sizes), [[0]]
    for _ in range(steps):
        while len(engine.waiting) < 2:
            head = draw.choice(prompts)[: draw.randint(0, longest // 2)]
            prompts.append(head + [draw.randrange(alphabet) for _ in range(draw.randint(1, longest - len(head)))])
            prompts[:] = prompts[-12:]
            engine.add(prompts[-1], draw.randint(1, longest))
        engine.step(lambda: draw.randrange(alphabet))
    return engine
