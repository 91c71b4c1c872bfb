"""The managers that CrossHair must refute in every run."""

# Managers that must be refuted in the same run, each for its own clause: one at least of each generation and most kinds.
PLANTED = (
    "early-fresh-uncounted",
    "early-reset-before-look",
    "early-whole-prompt-cached",
    "layout-continued-chunk-short",
    "layout-free-hits-forgotten",
    "late-admission-ignores-hits",
    "late-chain-from-block-before",
    "late-double-free",
    "late-forward-release",
    "late-free-hit-reset",
    "late-growth-raises",
    "late-live-hit-uncounted",
    "late-table-kept",
    "late-whole-prompt-cached",
)
