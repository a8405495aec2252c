"""How far a claim may be from what is measured, and how much is measured."""

CONFIDENCE = 0.99
FEW_EXAMPLES = 3  # whose answer rounding may turn, or one in a thousand where that is more
FEW = 1e-3  # of a mean squared error
MOST = 1e-2  # which no bound exceeds on account of a deviation: a point, or 1 % of an error
MOST_NETWORKS = 10_000
