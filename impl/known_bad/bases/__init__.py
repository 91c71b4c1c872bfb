"""The sound managers that faults are planted in; each conforms by itself."""
