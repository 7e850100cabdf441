"""The numbers that a search takes, for settings here and for what an exported model says of itself.

They are wide: what lies beyond is a slip, or overflows. A number of a search has 32 bits, up to
3.4e38.
"""

from typing import Final

MOST_ROWS: Final = 10_000
"""Of a beam, or drawn outputs: a thousand is wide, and a million took minutes and gigabytes."""
MOST_TOKENS: Final = 20_000
"""Of an output: four chapters of a book in words, and seconds of steps."""
MOST_LENGTH_PENALTY: Final = 5.0
"""α: the length of the longest output to this power still has 32 bits (20,000^5 = 3e21); 0 to 2 is
usual."""
MOST_COVERAGE_PENALTY: Final = 100.0
"""β: each of millions of positions costs at most 87 times this (log of the least number); 0 to 1 is
usual."""
LEAST_TEMPERATURE: Final = 0.001
"""Already the most probable token: log probabilities divided by this stay far below 3.4e38."""
MOST_TEMPERATURE: Final = 1000.0
"""Already as good as evenly distributed."""
LEAST_TOP_P: Final = 1e-6
"""Already the most probable token alone; a number that 32 bits take for 0 would leave none."""
