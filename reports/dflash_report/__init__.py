"""The report: records of runs, and the history of nights, as one HTML page and figures (docs/report.md)."""
