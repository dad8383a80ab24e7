"""The tables of the experiment `network`, and what they come to in words."""
