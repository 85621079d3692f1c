"""Numbers that are too long to mean a quantity."""

from atdp_cli.text.detection.identifiers.recogniser import pattern

digits = pattern("NUMBER", r"\d{5,}+")

# An identifier read out in groups, such as 34 17 52. Groups of four are left alone: years stand side by side.
spaced_digits = pattern("NUMBER", r"(?<![\w.,:/-]) (?=(?:[ ]?\d){5}) \d{1,3}+(?:[ ]\d{1,3}+){2,}+ (?![\w,:/-]|\.\d)")
