"""The known-bad managers of ``impl``: whatever reaches the content of K/V is seen, and by both exact lanes alike."""

import pytest

from kvspec.gpu_tests import fingerprint
from kvspec.gpu_tests.catalogue import portable
from kvspec.gpu_tests.engine import Run
from kvspec.gpu_tests.lanes import AttentionLane
from kvspec.gpu_tests.schedulers import SCHEDULERS, drive
from kvspec.impl.known_bad import KNOWN_BAD, KnownBad

CONTENT = {"CONTENT", "COMPUTED"}  # the clauses that say which K/V a cached token must have
SEEDS = 20  # of both schedulers, for managers that must be seen; the others get a few
FEW = 4


def first_seen(manager: KnownBad) -> Run | None:
    """The first run in which the fingerprint lane objects."""
    implementation = manager.implementation()
    for seed in range(SEEDS if manager.clause in CONTENT else FEW):
        for scheduler in SCHEDULERS:
            run = drive(implementation, scheduler, seed, weak_hash=manager.context == "collision")
            if not fingerprint.replay(run).clean:
                return run
    return None


@pytest.mark.parametrize("slug", sorted(KNOWN_BAD))
def test_known_bad_manager(slug):
    manager = KNOWN_BAD[slug]
    seen = first_seen(manager)
    assert seen or manager.clause not in CONTENT, f"{slug} breaks {manager.clause} and went unnoticed in {SEEDS} seeds"
    run = seen or drive(manager.implementation(), "adversarial", seed=0)
    findings = AttentionLane(portable("numpy")).replay(run)
    assert findings.clean == (seen is None), findings.differences[:1]
