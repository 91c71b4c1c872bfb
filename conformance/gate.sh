#!/usr/bin/env bash
# The gate of a CI system: check one block manager, write the report, be red where the run shows a violation, a fixed
# but still listed failure, or nothing at all.
#
# Settings: KVSPEC_IMPL (what to check), and if wanted KVSPEC_PROFILES, KVSPEC_DECLARE, KVSPEC_KNOWN,
# KVSPEC_EFFORT, KVSPEC_SEED, KVSPEC_STUBS (comma-separated), KVSPEC_REPORT (a folder), KVSPEC_PYTHON (the Python that has kvspec).
# Exit code: 0 conforms, 1 violation, 2 usage or adapter error, 3 the run proves nothing.
#
# Without this file, in any CI system:
#
#   python -m pip install kvspec
#   kvspec check path/to/block_manager.py:BlockManager --known known.toml --report kvspec-report
#   cat kvspec-report/report.md
set -euo pipefail

if [[ -z ${KVSPEC_IMPL:-} ]]; then
    echo "KVSPEC_IMPL is not set: name what to check, for example path/to/block_manager.py:BlockManager" >&2
    exit 2
fi

report=${KVSPEC_REPORT:-kvspec-report}
arguments=(check "$KVSPEC_IMPL" --effort "${KVSPEC_EFFORT:-default}" --seed "${KVSPEC_SEED:-0}" --report "$report")
[[ -z ${KVSPEC_PROFILES:-} ]] || arguments+=(--profiles "$KVSPEC_PROFILES")
[[ -z ${KVSPEC_DECLARE:-} ]] || arguments+=(--declare "$KVSPEC_DECLARE")
[[ -z ${KVSPEC_KNOWN:-} ]] || arguments+=(--known "$KVSPEC_KNOWN")
IFS=, read -ra stubs <<<"${KVSPEC_STUBS:-}"
for stub in ${stubs[@]+"${stubs[@]}"}; do
    arguments+=(--stub "${stub//[[:space:]]/}")
done

rm -f "$report/report.json" "$report/report.md" # an old report must not pass for this run's
status=0
"${KVSPEC_PYTHON:-python3}" -c 'from kvspec.conformance.command_line import main; main()' "${arguments[@]}" || status=$?

if [[ $status == 0 && ! -s $report/report.json ]]; then
    echo "the check ended without a report: it proves nothing" >&2
    status=3
fi
if [[ -n ${GITHUB_STEP_SUMMARY:-} && -s $report/report.md ]]; then
    head -c 900000 "$report/report.md" >>"$GITHUB_STEP_SUMMARY" # GitHub takes one mebibyte a step
fi
if [[ -n ${GITHUB_OUTPUT:-} ]]; then
    verdicts=(conforms violates "usage error" "proves nothing")
    printf 'verdict=%s\nreport=%s\n' "${verdicts[$status]:-crashed}" "$report" >>"$GITHUB_OUTPUT"
fi
exit "$status"
