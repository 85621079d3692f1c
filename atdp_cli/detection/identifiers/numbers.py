"""Number plates, numbers of chassis, and numbers of no kind that are too long to mean a quantity."""

import re

from atdp_cli.detection.identifiers.recogniser import pattern

digits = pattern("NUMBER", r"\d{5,}+")


# An identifier read out in groups, such as 34 17 52. Groups of four are left alone: years stand side by side.
spaced_digits = pattern("NUMBER", r"(?<![\w.,:/-]) (?=(?:[ ]?\d){5}) \d{1,3}+(?:[ ]\d{1,3}+){2,}+ (?![\w,:/-]|\.\d)")

_DIGIT_WORD = r"(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)"


# An identifier spelled out, such as four one five, five five five, two six seven one.
digits_in_words = pattern(
    "NUMBER",
    rf"(?i)(?<![\w-]) (?:(?:double|triple)[ ])? {_DIGIT_WORD} (?:[ ,.-]{{1,3}}(?:(?:double"
    rf"|triple)[ ])?{_DIGIT_WORD}){{5,19}}+ (?![\w-])",
)


# Where one format is another's beginning, the longer stands first.
_PLATES = r"""(?:
    [A-Z]{2}[ -]?\d{1,2}[ -]?[A-Z]{1,3}[ -]?\d{4}        # India
  | [A-Z]{2}\d{2}[ ]?[A-Z]{3}                            # United Kingdom, since 2001
  | [A-Z]{2}[ -]?\d{3}[ -]?[A-Z]{2}                      # France, Italy
  | [A-Z]\d{3}[A-Z]{2}[ ]?\d{2,3}                        # Russia
  | [A-Z]{3}-?\d[A-Z]\d{2}                               # Brazil, since 2018
  | \d[A-Z]{3}[ ]?\d{3}                                  # California
  | [A-ZÄÖÜ]{1,3}[ -][A-Z]{1,2}[ -]?\d{1,4}[EH]?         # Germany
  | [A-Z]{1,2}[ -]?\d{4,5}                               # Norway, Denmark
  | [A-Z]{3}[ -]?\d{3,4} | [A-Z]{3}[ -]?\d{2}[A-Z]       # the United States, Brazil, Sweden, Finland
  | [A-Z]{3}[ ]?\d{1,3}[A-Z] | [A-Z]\d{1,3}[ ]?[A-Z]{3}  # United Kingdom, before
  | \d{4}[ -]?[A-Z]{2,3} | \d{3}[ -]?[A-Z]{3}            # Spain, the United States
  | [A-Z\d]{1,3}-[A-Z\d]{2,3}-[A-Z\d]{1,3}               # the Netherlands, Portugal, Japan
  | \d{1,4}[ ]?[A-Z]{2,3}[ ]?\d{2,3}                     # France, before; Australia, Ireland
  | [A-Z]{2,3}[ ][A-Z\d]{4,5}                            # Poland
  | [A-Z\d]{5,8}
)"""

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


def _mixes(match: re.Match[str]) -> bool:
    """Letters and digits; and where the word means other things too, capitals."""
    value = match["value"]
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    return (
        digits
        and (letters or (match["plate"] is not None and _YEAR.match(value) is None))
        and (match["plate"] is not None or value.isupper() or match["link"] is not None)
    )


plate = pattern(
    "PLATE",
    rf"""(?i)(?<!\w)
    (?: (?P<plate> (?:licen[cs]e|number|registration|reg|vehicle|car)\s?-?(?:number\s)?(?:plate|tag)s? | plates? |
      kennzeichen
          | plaque | matr[íi]cula | placa | targa | immatriculation )
      | tag | reg(?:istration)? | registered ) (?!\w) \.?
    (?:\s(?:number|num|no|nr)\.?(?!\w))? (?:\s(?:on|of|for)\s(?:the|my|his|her|our|their)\s[a-z]{{2,12}})?
    [ ]{{0,2}} (?P<link> (?:[:=\#]|is|was|as|reads?|said|says)(?!\w) | [:=\#(] )? [ ]{{0,2}} ["'“]?
      (?P<value>{_PLATES}) (?![\w-])""",
    check=_mixes,
)

_VALUES = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)), strict=True))

_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def is_vin(value: str) -> bool:
    """Whether the ninth of 17 characters is the check digit of the others (49 CFR 565.15)."""
    numbers = (int(each) if each.isdigit() else _VALUES[each] for each in value.upper())
    return "0123456789X"[sum(map(int.__mul__, numbers, _WEIGHTS)) % 11] == value[8].upper()


# The last four are digits everywhere (ISO 3779); most makers outside North America set no check digit.
chassis_number = pattern(
    "VIN",
    r"""(?i)(?<![\w-]) (?P<named>(?:vin|chassis|frame)(?:\s(?:number|num|no|nr)\.?|\#)?(?:\s?[:=\#]|\sis|\swas)?\s{1,2}
      |(?:vin|chassis)[:=\#])?
    (?P<value> (?=[0-9]{0,16}[A-Z])[A-HJ-NPR-Z0-9]{8}[0-9X][A-HJ-NPR-Z0-9]{4}[0-9]{4} ) (?![\w-])""",
    check=lambda match: match["named"] is not None or is_vin(match["value"]),
)

chassis_in_context = pattern(
    "VIN",
    r"""(?i)(?<!\w) (?:vin|vehicle\sidentification|chassis) (?!\w) (?:\s(?:number|num|no|nr|code)\.?(?!\w))?
    [ ]{0,2} (?:[:=\#]|is|was|ends\sin|ending)? [ ]{0,2} (?P<value> (?=[A-Z-]{0,20}[0-9])[A-Z0-9-]{6,20} ) (?![\w-])""",
)
