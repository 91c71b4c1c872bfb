"""What decides whether a mutant of the bundled manager lives: the harness itself, and nothing else.

``run.py`` copies this file into the folder in which mutmut works, as a test module.
"""

import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.hash_check import check_hash
from kvspec.impl.adapter import Implementation
from kvspec.impl.block_manager import BlockManager
from kvspec.impl.nano_vllm import implementation_of
from kvspec.spec.clauses import clauses_of

PROGRAMS = {"model": 250, "steps": 150, "chunked": 150}


@pytest.fixture(scope="module")
def bundled() -> Implementation:
    return implementation_of(BlockManager)


def test_hash_bytes(bundled: Implementation) -> None:
    assert check_hash(bundled) is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_clause_breaks(bundled: Implementation, name: str) -> None:
    context = CONTEXTS[name]
    profiles = bundled.declaration.profiles.intersection(context.profiles)
    declared = {clause.slug for profile in profiles for clause in clauses_of(profile)}
    found = run_campaign(bundled, context, 0, PROGRAMS[name]).found
    assert not declared.intersection(found)
