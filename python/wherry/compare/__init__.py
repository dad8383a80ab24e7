"""Runs beside each other. match finds the cells that both have; machines decides whether times can be set against
times, or only ratios within each run; sides has a cell's median with its error; judge says changed, unchanged or
undecided; limits is --fail-on; words groups what was found."""
