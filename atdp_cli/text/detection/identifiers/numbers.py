"""Numbers that are too long to mean a quantity."""

import re

from atdp_cli.text.detection.identifiers.recogniser import pattern

digits = pattern("NUMBER", r"\d{5,}+")

# An identifier read out in groups, such as 34 17 52. Groups of four are left alone: years stand side by side.
spaced_digits = pattern("NUMBER", r"(?<![\w.,:/-]) (?=(?:[ ]?\d){5}) \d{1,3}+(?:[ ]\d{1,3}+){2,}+ (?![\w,:/-]|\.\d)")

_DIGIT_WORD = r"(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"

# An identifier spelled out, such as four one five, five five five, two six seven one.
digits_in_words = pattern(
    "NUMBER",
    rf"(?<![\w-]) (?:(?:double|triple)[ ])? {_DIGIT_WORD} (?:[ ,.-]{{1,3}}(?:(?:double"
    rf"|triple)[ ])?{_DIGIT_WORD}){{5,19}}+ (?![\w-])",
    flags=re.IGNORECASE,
    words=("zero", "oh", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
)
