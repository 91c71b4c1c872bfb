"""The model with all its extensions as a program behind the pipe: ``cmd:python tests/pipe_extended.py``."""

import json
import sys

from kvspec.conformance.lockstep import ask
from kvspec.impl.model_adapter import EXTENDED
from kvspec.impl.pipe.protocol import (
    ANSWER,
    REQUEST,
    BlockHash,
    HashBlock,
    Hello,
    Introduction,
    Look,
    Start,
    Started,
    Stop,
    Stopped,
)


def main() -> None:
    """Answer each line of standard input with one of standard output."""
    adapter = None
    for line in sys.stdin:
        request = REQUEST.read(json.loads(line))
        if isinstance(request, Hello):
            answer = Introduction(1, "0.1", "Python", EXTENDED.declaration, snapshot=True, hash=True)
        elif isinstance(request, Start):
            adapter, answer = EXTENDED.create(request.world), Started()
        elif isinstance(request, HashBlock):
            answer = BlockHash(EXTENDED.chain_hash(request.tokens, request.parent))
        elif isinstance(request, Stop):
            answer = Stopped()
        else:
            answer = adapter.snapshot() if isinstance(request, Look) else ask(adapter, request)
        print(json.dumps(ANSWER.write(answer)), flush=True)
        if isinstance(request, Stop):
            return


if __name__ == "__main__":
    main()
