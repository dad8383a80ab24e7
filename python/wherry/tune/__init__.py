"""A plan for this CPU, by measurement, and proof that it is better than the default; else the default stays.

`grids` says which rows are measured, `measuring` takes plans through the runner, `choose` makes thresholds of curves,
`cliffs` finds where a routine falls, `prove` holds the candidate against the default on cells that it was not chosen
by, `whole` does one after the other. `tunables` and `libc` do the same for glibc's own settings. The command line is
not known here."""
