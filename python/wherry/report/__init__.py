"""Seeing a run: one page of HTML, or pictures for a mail or a paper. (What a terminal prints is wherry.cli.report.)

dimensions tells rows apart and names what differs; curves, bars, heatmaps and regions each make one kind of picture,
in the grammar of Vega-Lite; pictures chooses between them by the dimensions of the rows alone, so that an experiment
gets its pictures without knowing of any; look has colours and fonts; still draws PNG and SVG; page makes the HTML."""
