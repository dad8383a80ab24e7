"""The tables of the experiment `latency`, and its answer in words."""
