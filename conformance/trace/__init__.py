"""Traces: one format for vectors, replay files, known failures and production logs."""

from kvspec.conformance.trace.encoding import DECLARATION, OPERATION, OUTCOME, SNAPSHOT, WORLD, EncodingError
from kvspec.conformance.trace.format import FORMAT_VERSION, Footer, Header, Record, Trace, TraceError
from kvspec.conformance.trace.judging import Judgement, judge_trace
from kvspec.conformance.trace.reader import TraceReader, read_trace, stream_trace
from kvspec.conformance.trace.writer import NotRepeatable, TraceWriter, header_of, slug_of, write_lockstep, write_trace

__all__ = [
    "DECLARATION",
    "FORMAT_VERSION",
    "OPERATION",
    "OUTCOME",
    "SNAPSHOT",
    "WORLD",
    "EncodingError",
    "Footer",
    "Header",
    "Judgement",
    "NotRepeatable",
    "Record",
    "Trace",
    "TraceError",
    "TraceReader",
    "TraceWriter",
    "header_of",
    "judge_trace",
    "read_trace",
    "slug_of",
    "stream_trace",
    "write_lockstep",
    "write_trace",
]
