"""Places on the Earth by latitude and longitude."""

import re

from atdp_cli.text.detection.identifiers.recogniser import pattern

_SIGN = "[-+−–]?"
_MINUTES = r"\d{1,2}(?:\.\d{1,6})?\s?(?:['′’‘]|m(?:in)?\b)"
_SECONDS = r"\d{1,2}(?:\.\d{1,6})?\s?(?:[\"″”“]|['′’]{2}|s(?:ec)?\b)"
_DEGREES = r"\d{1,3}\s?(?:[°º]|d(?:eg)?\b)"
_DMS = (
    rf"(?: [NSEWO]\s?{_DEGREES}\s?{_MINUTES}(?:\s?{_SECONDS})? "
    rf"| {_DEGREES}\s?{_MINUTES}(?:\s?{_SECONDS})?\s?[NSEWO](?!\w) )"
)
_SIDED = r"(?: [NSEWO]\s?\d{1,3}\.\d{1,9}\s?[°º]? | \d{1,3}(?:\.\d{1,9}\s?[°º]?|\s?[°º])\s?[NSEWO](?!\w) )"


_NUMBER_BEFORE = re.compile(r"\.\d{1,12}\s?[,;]\s?\Z")


def _on_the_earth(match: re.Match[str]) -> bool:
    if match["latitude"] is None:
        return True
    if _NUMBER_BEFORE.search(match.string, max(0, match.start() - 16), match.start()):
        return False
    latitude, longitude = (float(match[name].replace("−", "-").replace("–", "-")) for name in ("latitude", "longitude"))
    return abs(latitude) <= 90 and abs(longitude) <= 180 and max(abs(latitude), abs(longitude)) >= 2


# Four decimals are a street; with fewer, or alone, a number needs a side of the Earth or a word.
coordinates = pattern(
    "COORDINATES",
    rf"""(?<![\w.,/-]) (?:
        (?P<latitude>{_SIGN}\d{{1,2}}\.\d{{4,15}}) (?:\s?[,;/|]\s{{0,2}}|\s{{1,2}})
          (?P<longitude>{_SIGN}\d{{1,3}}\.\d{{4,15}})
        (?! \w | [.,;]?\s?{_SIGN}\d{{1,3}}\.\d{{2}} )
      | {_DMS} (?: \s?[,;/|]?\s{{0,2}} {_DMS} )?
      | {_SIDED} \s?[,;/|]?\s{{0,2}} {_SIDED} )""",
    flags=re.IGNORECASE,
    check=_on_the_earth,
)

_NAMES = (
    *(
        "lat",
        "latitude",
        "lon",
        "lng",
        "long",
        "longitude",
        "coordinates",
        "coords",
        "coord",
        "gps",
        "geo",
        "geolocation",
    ),
    *("location", "position", "waypoint", "latlng", "latlon"),
)

coordinates_in_context = pattern(
    "COORDINATES",
    rf"""(?<![A-Za-z0-9]) (?:{"|".join(_NAMES)}) (?!\w) ["']?
    (?:\s(?:is|are|was|at|location|position|coordinates|coords))?
    \s{{0,2}} [:=(@]? \s{{0,2}} ["'(\[]?
    (?P<value> {_SIGN}\d{{1,3}}\.\d{{1,15}} (?: \s?[,;/]\s? {_SIGN}\d{{1,3}}\.\d{{1,15}} | (?<=\.\d\d\d)\d{{0,12}}
      | (?<=\.\d\d) ) [°º]? ) (?![\w%]|\.\d)""",
    flags=re.IGNORECASE,
    words=_NAMES,
)
