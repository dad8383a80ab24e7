"""Runs of many machines: read in bulk, told apart by CPU model, summarised, asked by SQL; and measured on the hosts of
a Dask scheduler. Reading needs nothing beyond Wherry's own dependencies; `wherry[fleet]` brings what the rest needs."""
