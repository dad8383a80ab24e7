"""Other tools' formats. Out: tables (CSV, TSV, Markdown), google-benchmark's JSON, Go's benchmark text. In: the last
two and the JSON of glibc's benchtests, converted into a run whose `source` says where it comes from.

files reads whatever of these a path holds; foreign builds a run out of another tool's figures, with null for what that
tool does not tell; naming writes a cell's dimensions into one name and reads them out of one; places tells them in
words; cells are the lines of tables, shown an imported run's own tables; samples are what an export repeats.
google_benchmark, benchfmt and benchtests are one format each, export the list of those that are written."""
