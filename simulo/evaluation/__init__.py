"""Judging runs: stop counts, contact sweeps, overhang, speed, and the reports on them."""
