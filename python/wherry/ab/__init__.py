"""A program itself, under two environments, in turns: what it costs under each, and whether that differs beyond noise.

`sides` says what the two are, `running` runs the program once, `turns` runs it in turns, `figures` makes figures of
the runs, `verdict` words of the figures, `record` a run file of all of it. Nothing here knows the command line."""
