"""Does a prefix-cache hit reproduce identical attention outputs?  Real block tables, on a CPU or a GPU."""
