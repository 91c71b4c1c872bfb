"""The conformance harness: search engines over the one judge, a pytest suite, a command line, reports."""
