"""Verdicts on real managers as stored data: ``python -m kvspec.conformance.engines_report vllm:FILE.whl …``.

One JSON file an engine and version; the table of README.md is made from them (``engines_table``).  Nothing of an engine
is stored, and no path of the machine that the run was on.
"""

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from kvspec import spec
from kvspec.conformance.examination import Examination, Options
from kvspec.conformance.render.report_data import VERDICTS
from kvspec.conformance.verdict import ConformanceReport, ExitCode, Standing
from kvspec.impl.errors import LoadError
from kvspec.impl.loader import load

FOLDER = Path(__file__).parent / "reports" / "engines"


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What one run found out about one version of one manager.

    `profiles`: profile -> its standing and the clauses that broke, those that were only probed included.  `shortest`:
    clause -> operations of the shrunk counterexample, for the violations.  `operations`: how many were performed in the
    random programs.
    """

    engine: str
    version: str
    shape: str
    verdict: str
    profiles: dict[str, dict[str, Any]]
    shortest: dict[str, int]
    operations: int
    effort: str
    seed: int
    spec_version: str
    date: str

    @property
    def file_name(self) -> str:
        """A name that is a file name on every system."""
        return re.sub(r"[^\w.-]+", "+", f"{self.engine}-{self.version}") + ".json"


def examine(target: str, effort: str, seed: int, engine: str = "", version: str = "") -> EngineReport:
    """Check one target.  Raises LoadError, and ValueError if no version is known."""
    implementation = load(target)
    version = version or implementation.version
    if not version:
        raise ValueError(f"{target} does not tell its version: give --version")
    examination = Examination(implementation, Options(effort=effort, seed=seed))
    examination.decide_all()
    return _report(examination.report(), engine or implementation.name, version)


def _report(report: ConformanceReport, engine: str, version: str) -> EngineReport:
    if report.exit_code() is ExitCode.PROVES_NOTHING:
        raise ValueError(f"{engine} {version}: the run proves nothing: {'; '.join(report.proves_nothing)}")
    profiles = {
        each.profile: {"standing": str(each.standing), "broken": list(each.broken)}
        for each in report.profiles()
        if each.standing is not Standing.NOT_TRIED
    }
    broken = {one.clause: one.counterexample for one in report.broken()}
    shortest = {clause: len(found.program.operations) for clause, found in broken.items() if found}
    operations = sum(counts["operations"] for counts in report.counts.values())
    today = datetime.now(UTC).date().isoformat()
    verdict, version_of_spec = VERDICTS[report.exit_code()], spec.__version__
    return EngineReport(
        engine,
        version,
        report.shape,
        verdict,
        profiles,
        shortest,
        operations,
        report.effort,
        report.seed,
        version_of_spec,
        today,
    )


def store(report: EngineReport, folder: Path = FOLDER) -> Path:
    """Write a report; the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / report.file_name
    path.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    return path


def stored(folder: Path = FOLDER) -> list[EngineReport]:
    """All stored reports, by engine, then by version as people count."""
    read = [EngineReport(**json.loads(file.read_text(encoding="utf-8"))) for file in folder.glob("*.json")]
    return sorted(read, key=lambda each: (each.engine, _counted(each.version)))


def _counted(version: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (0, part) for part in version.split(".")]


def main(
    targets: list[str],
    effort: str = "default",
    seed: int = 0,
    engine: str = typer.Option("", help="The name in the table, if the target has none of its own."),
    version: str = typer.Option("", help="The release or commit, if the target does not tell."),
) -> None:
    """Check the targets and store a report of each."""
    for target in targets:
        try:
            report = examine(target, effort, seed, engine, version)
        except (LoadError, ValueError) as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(ExitCode.USAGE) from error
        print(f"{report.engine} {report.version}: {report.verdict}   {store(report)}", flush=True)


if __name__ == "__main__":
    typer.run(main)
