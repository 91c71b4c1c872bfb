"""The digest of a trace: SHA-256 over every line before the footer, then over what the footer claims.

Each line counts with its line feed; the claims are the count, the verdict and the reason, each with a line feed, an
absent one as an empty line.  It finds damage and careless edits; it is no signature.
"""

import hashlib


class Digest:
    """Grows line by line."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, line: bytes) -> None:
        """One line with its line feed."""
        self._sha.update(line)

    def close(self, operations: int, verdict: str | None, because: str | None) -> str:
        """The digest with the footer's claims; more lines may still be added to this object."""
        sha = self._sha.copy()
        sha.update(f"{operations}\n{verdict or ''}\n{because or ''}\n".encode())
        return f"sha256:{sha.hexdigest()}"
