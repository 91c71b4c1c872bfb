"""How much is tried: numbers of programs and examples, never seconds, so that a seed decides the result."""

from dataclasses import dataclass

from kvspec.conformance.contracts.results import NO_PATH_LIMIT, Budget


@dataclass(frozen=True, slots=True)
class Effort:
    """`programs`: random programs a context.  `examples`: Hypothesis examples a context.

    `contracts`: how long CrossHair looks for a counterexample, or None for not at all.
    `thorough`: are several counterexamples shrunk, and all shorter programs of the same small world tried?
    """

    name: str
    programs: dict[str, int]
    examples: int
    thorough: bool = True
    contracts: Budget | None = None


EFFORTS: dict[str, Effort] = {
    effort.name: effort
    for effort in (
        Effort(
            "smoke",
            {"steps": 400, "chunked": 200, "model": 100, "one": 100, "collision": 100, "namespace": 100}
            | {"several": 150, "truncate": 150, "reset": 150, "probe": 150, "owners": 150, "axes": 150},
            5,
            thorough=False,
        ),
        Effort(
            "default",
            {"steps": 6000, "chunked": 4000, "model": 2000, "one": 1500, "collision": 1000, "namespace": 1500}
            | {"several": 1500, "truncate": 2000, "reset": 1500, "probe": 1500, "owners": 1500, "axes": 1500},
            60,
            contracts=Budget(paths=40, seconds=60.0),
        ),
        Effort(
            "deep",
            {"steps": 120000, "chunked": 80000, "model": 20000, "one": 20000, "collision": 5000, "namespace": 20000}
            | {"several": 20000, "truncate": 40000, "reset": 20000, "probe": 20000, "owners": 20000, "axes": 20000},
            1000,
            contracts=Budget(NO_PATH_LIMIT, seconds=90.0),
        ),
    )
}
