"""A mix, measured: what its copies take with libc, with Wherry's plans and with peers; and what that would change of
the program it was recorded from.

`parts` cuts a mix into rows of the runner, `totals` adds them up, `predict` says what that means for the program, in
words. The command line is not known here."""
