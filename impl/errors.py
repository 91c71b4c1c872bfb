"""What can go wrong before the first operation; each message says what is wrong, where, and what to do next."""


class LoadError(Exception):
    """The target given to ``--impl`` cannot be turned into an implementation."""


class ImplementationError(Exception):
    """The implementation makes no manager for this world, for example because it refuses the block size."""
