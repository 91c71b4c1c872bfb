"""Block managers written in any language, as programs that speak the pipe protocol (see ``spec/PORTING.md``)."""

from kvspec.impl.pipe.loading import PREFIX, load_pipe

__all__ = ["PREFIX", "load_pipe"]
