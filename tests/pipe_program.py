"""A program for the tests: a pool without a prefix cache that speaks the pipe protocol, and many ways to misbehave.

It uses nothing of kvspec: it is what somebody writes who has read ``spec/PORTING.md`` for half an hour.
"""

import json
import os
import signal
import subprocess
import sys
import time

DECLARATION = {
    "name": "pool-program",
    "profiles": ["pool"],
    "covers": "known",
    "credits_shared": False,  # without a cache nothing is shared
    "release_in_flight": True,
}
HELLO = {"outcome": "hello", "protocol": 1, "version": "1", "language": "Python", "declaration": DECLARATION}


class Pool:
    def __init__(self, world):
        if world["blocks"] < 1 or world["block_size"] < 1:
            raise ValueError(f"no pool of {world['blocks']} blocks of {world['block_size']} tokens")
        self.blocks, self.size = world["blocks"], world["block_size"]
        self.free, self.tables, self.tokens = list(range(self.blocks)), {}, {}

    def grow(self, name):
        missing = -(-self.tokens[name] // self.size) - len(self.tables[name])
        if missing > len(self.free):
            return False
        self.tables[name] += self.free[:missing]
        del self.free[:missing]
        return True

    def admit(self, sequence, tokens, limit, namespace):
        if -(-len(tokens) // self.size) > self.blocks:
            return {"outcome": "refused", "reason": "too_large"}
        self.tables[sequence], self.tokens[sequence] = [], len(tokens)
        if not self.grow(sequence):
            del self.tables[sequence], self.tokens[sequence]
            return {"outcome": "refused"}
        return {"outcome": "admitted", "cached": 0, "reserved": min(limit, len(tokens)), "table": self.tables[sequence]}

    def reserve(self, sequence, count):
        return (
            {"outcome": "reserved", "table": self.tables[sequence]} if self.grow(sequence) else {"outcome": "refused"}
        )

    def commit(self, sequences):
        return {"outcome": "committed", "tables": [self.tables[name] for name in sequences]}

    def append(self, sequence, token):
        self.tokens[sequence] += 1
        return {"outcome": "appended"}

    def release(self, sequence, cause):
        self.free += reversed(self.tables.pop(sequence, []))
        return {"outcome": "released"}


def misbehave(way):
    if way == "dies":
        print("out of luck", file=sys.stderr)
        sys.exit(3)
    elif way == "killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif way == "hangs":
        print("thinking", file=sys.stderr, flush=True)
        time.sleep(1000)
    elif way == "noise":
        print("Loading weights ...")
    elif way == "unknown":
        print('{"outcome":"perhaps"}')
    elif way == "extra field":
        print('{"outcome":"released","mood":"fine"}')
    elif way == "partial":
        print('{"outcome":"rel', end="", flush=True)
        os._exit(0)
    elif way == "extra line":
        print('{"outcome":"released"}')
    elif way == "loud":
        print("x" * 200_000, file=sys.stderr, flush=True)
    elif way == "endless line":
        while True:
            sys.stdout.write("x" * (1 << 20))
    elif way == "panics":
        print("panicked at manager.rs:7:", "no room", *(f"{n}: frame" for n in range(90)), sep="\n", file=sys.stderr)
        sys.exit(101)
    elif way == "closes":
        os.close(1)
        time.sleep(1000)


def main(way="", folder=""):
    pool, operations, started = None, 0, time.time_ns()
    if folder:
        left = subprocess.Popen(["sleep", "1000"])
        with open(os.path.join(folder, "pids"), "a") as file:  # noqa: PTH118, PTH123
            file.write(f"{os.getpid()} {left.pid}\n")
    for line in sys.stdin:
        request = json.loads(line)
        verb = request.pop("op")
        if verb == "hello":
            answer = HELLO
        elif verb == "stop":
            answer = {"outcome": "stopped"}
        elif verb == "start":
            try:
                pool = pool if pool and way == "keeps" else Pool(request["world"])
                answer = {"outcome": "started"}
            except ValueError as error:
                answer = {"outcome": "failed", "error": str(error), "clear": True}
        else:
            operations += 1
            if operations == 7:
                misbehave(way)
            try:
                answer = getattr(pool, verb)(**request)
            except KeyError as error:
                answer = {"outcome": "failed", "error": f"{error} is not live", "clear": True}
        if way == "moody" and verb == "start":
            answer = {"outcome": "started"}
        if way == "moody" and verb == "admit":
            answer["table"] = [started // 1000 % 97 + time.time_ns() % 97]
        print(json.dumps(answer), flush=True)
        if verb == "stop":
            break


main(*sys.argv[1:])
