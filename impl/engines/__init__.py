"""Real engines, driven from the user's own installation, a wheel or an unpacked one: nothing of them is part of kvspec.

``vllm``, ``lmdeploy``, ``sglang``, ``mini-sglang``
                         the installed engine, *light*: only its block manager is loaded, the rest are inert stand-ins
``vllm:PATH``            the same from a wheel, or from a folder in which the package lies
``vllm:full``            the installed engine, imported in the ordinary way

One folder an engine: what to load (``loading``), which calls the five operations become (``adapter``), and what is
declared of it (its ``__init__``).
"""

from kvspec.impl.adapter import Implementation


def _vllm(where: str) -> Implementation:
    from kvspec.impl.engines.vllm import vllm

    return vllm(where)


def _lmdeploy(where: str) -> Implementation:
    from kvspec.impl.engines.lmdeploy import lmdeploy

    return lmdeploy(where)


def _sglang(where: str) -> Implementation:
    from kvspec.impl.engines.sglang import sglang

    return sglang(where)


def _minisgl(where: str) -> Implementation:
    from kvspec.impl.engines.minisgl import minisgl

    return minisgl(where)


ENGINES = {"vllm": _vllm, "lmdeploy": _lmdeploy, "sglang": _sglang, "mini-sglang": _minisgl}
