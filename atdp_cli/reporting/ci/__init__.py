"""The files that a CI reads: JUnit, SARIF, annotations, step summaries and baselines. Private."""
