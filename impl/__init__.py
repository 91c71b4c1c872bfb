"""Real block managers, and the way to plug one in: adapters and the loader."""
