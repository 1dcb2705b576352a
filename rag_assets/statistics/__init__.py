"""Is a difference between two evaluations of the same queries more than chance?

`paired` looks at one measure (interval, test, smallest effect that could be seen), `holm` corrects
for looking at many, `comparisons` does both for a table of old and new values, and `sentences` says
what came out. `means` gives an interval to each mean on its own.
"""
