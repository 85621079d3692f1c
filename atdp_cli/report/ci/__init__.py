"""Audits as CI reads them: checks, JUnit, SARIF, GitHub, and the baseline that a gate compares with."""
