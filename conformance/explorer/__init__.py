"""The small-world explorer: all programs of a small configuration, judged on the implementation's own states."""

from kvspec.conformance.explorer.certificate import Certificate
from kvspec.conformance.explorer.command import explore_command
from kvspec.conformance.explorer.copies import NotFaithful
from kvspec.conformance.explorer.defaults import default_worlds
from kvspec.conformance.explorer.judging import NotLinked
from kvspec.conformance.explorer.parallel import explore_all
from kvspec.conformance.explorer.search import Exploration, Progress, explore
from kvspec.conformance.explorer.shortest import shortest
from kvspec.conformance.explorer.world import SmallWorld

__all__ = [
    "Certificate",
    "Exploration",
    "NotFaithful",
    "NotLinked",
    "Progress",
    "SmallWorld",
    "default_worlds",
    "explore",
    "explore_all",
    "explore_command",
    "shortest",
]
