"""The tables of the experiment `switch`, and its answer in words."""
