"""Street addresses, ZIP codes and postcodes, and places on the Earth by latitude and longitude."""

import re

from atdp_cli.detection.identifiers.recogniser import either, listed, pattern
from atdp_cli.detection.word_lists import function_words

_STATE_CODES = either("state codes")

_STREET = either("street kinds")

_STATE = rf"(?:{_STATE_CODES}|(?i:{either('state names')}))"

_ZIP = r"[0-9]{5}(?:-[0-9]{4})?(?![\w-])"

_FLAT = r"(?i:apt|apartment|suite|ste|unit|flat|room|rm)\.?\s?\#?\s?[A-Za-z]?[0-9]{0,5}[A-Za-z]?(?!\w)"

_REST = rf"""
    (?: (?:,|\.)?\s{{1,2}} {_FLAT} | ,?\s{{1,2}}\#\s?\d{{1,5}} )?
    (?: (?:,|\.)?\s{{1,3}} (?:[^\W\d_][\w'.-]{{1,24}}\s{{1,2}}){{0,2}} [^\W\d_][\w'.-]{{1,24}} ,?\s{{1,2}} {_STATE}
        (?!\w) (?: ,?\s{{1,2}} {_ZIP} )? )?
    (?: ,?\s{{1,3}} {_STATE} (?!\w) (?: ,?\s{{1,2}} {_ZIP} )? | ,\s{{1,2}} {_ZIP} )?
"""


# Where the street comes first and the number last, as in much of Europe and Latin America.
_STREET_BEFORE = (
    r"(?:Via|Viale|Piazza|Corso|Rue|Avenue|Boulevard|Chemin|Calle|Avenida|Paseo|Rua|Travessa|Praça|Av\.|ul\."
    r"|Ulica|Aleja|Strada|Jalan)"
)

_STREET_ENDING = (
    r"(?:stra(?:ß|ss)e|str\.|gasse|weg|platz|allee|ufer|damm|laan|straat|plein|gracht|dijk|singel|gatan|gata|vägen"
    r"|gränd|vej|veien|vegen|gade|torv|katu|kuja|polku|stræti|straeti|vegur|braut|tänav|gatve|ulica|ulice)"
)

_STREET_AFTER = r"(?:utca|u\.|út|útja|tér|körút|köz|puiestee|tee|iela|gatvė|väg|katu|vei|plads|allé|allée)"

_NUMBER = r"(?<![\w.,$€£/-])\d{1,6}[A-Za-z]?(?:[/-]\d{1,4})?"

_ORDINAL = r"\d{1,3}(?i:st|nd|rd|th)"

street_address = pattern(
    "ADDRESS",
    rf"""{_NUMBER} \s{{1,2}}
    (?: (?:[A-Z][\w'’.-]{{0,24}}|{_ORDINAL}) \s{{1,2}} ){{1,4}}
    (?:{_STREET}|(?i:st|street|ave|avenue|rd|road|blvd)) (?!\w) \.? {_REST}""",
)


# France, Belgium, Switzerland and Quebec: the number, then the kind of street, then its name.
street_address_french = pattern(
    "ADDRESS",
    rf"""{_NUMBER} ,?\s{{1,2}} (?:(?:bis|ter),?\s{{1,2}})?
    (?i:rue|avenue|boulevard|bd|chemin|allée|quai|impasse|ruelle|sentier|passage|faubourg|cours|place|route)
    (?: \s{{1,2}}(?:de|du|des|la|le|les|à|au|aux|en|sur) | \s{{1,2}}(?:d|l)['’] ){{0,3}}
    (?: (?:\s{{1,2}}|(?<=['’])) [A-ZÀ-ÖØ-Þ][\w'’.-]{{0,24}} ){{1,3}} (?<!\.) {_REST}""",
)


# Roads that have a number for a name, and the routes on which the post is delivered.
numbered_road = pattern(
    "ADDRESS",
    rf"""(?: {_NUMBER} \s{{1,2}} (?:[NSEW]\.?\s{{1,2}})?
        (?i: (?:(?:us|state|old)\s)?(?:highway|hwy|route|rte)
        | (?:county|state|old|farm)\s(?:road|rd|highway|hwy) | fm )
        \.?\s{{1,2}} \#?\d{{1,4}}[A-Za-z]?(?!\w) (?!:\d)
      | (?<!\w) (?i:rural\sroute|r\.?r\.?|hc|star\sroute) \.?\s{{1,2}} \#?\d{{1,3}},?\s{{1,2}} (?i:box)\s{{1,2}}
        \#?\d{{1,5}}[A-Za-z]?(?!\w)
    ) {_REST}""",
)

street_address_lower_case = pattern(
    "ADDRESS",
    rf"""{_NUMBER} \s{{1,2}} (?P<name>[a-z][a-z'’-]{{1,24}}|{_ORDINAL}) (?:\s{{1,2}}[a-z][a-z'’-]{{1,24}})?
    \s{{1,2}} (?:street|st|avenue|ave|boulevard|blvd|road|rd|lane|ln|mews|crescent|terrace|gardens|grove) (?!\w)
    \.? {_REST}""",
    check=lambda match: match["name"] not in listed("not a street") | function_words(),
)


# A flat, then its house: flat 6 hollis court.
flat_in_house = pattern(
    "ADDRESS",
    rf"""(?i)(?<!\w) (?:flat|apt|apartment|unit)\.?[ ]{{1,2}}\#?[a-z]?\d{{1,4}}[a-z]?,?[ ]{{1,2}}
    (?:\d{{1,4}}[a-z]?,?[ ]{{1,2}})? (?P<name>[^\W\d_][\w'’-]{{1,24}})[ ]{{1,2}}
    (?:[^\W\d_][\w'’-]{{1,24}}[ ]{{1,2}})?
    (?:court|house|close|mews|mansions|lodge|tower|heights|gardens|terrace|street|st|road|rd|lane|avenue|ave)
    (?!\w) {_REST}""",
    check=lambda match: match["name"].lower() not in listed("not a street") | function_words(),
)

# India: the number of a house or a plot, then its street, its quarter and its city, parted by commas, up to the PIN.
numbered_house = pattern(
    "ADDRESS",
    r"""(?i)(?<!\w) (?: (?:h(?:ouse)?|d(?:oor)?|flat|plot|shop|villa|quarter|qtr|bungalow|survey|sy|khasra|old|new)
      [. /-]{1,2} (?:no|number)(?!\w) | hno(?!\w) ) [.:\s\#-]{0,3}
    (?P<value> [A-Z]{0,2}-?\d{1,5}[A-Z]{0,2}(?:[/-][A-Z0-9]{1,5}){0,5}
      (?: ,[ ]{0,2} [^\W_][\w'’./-]{0,24}(?:[ ][^\W_][\w'’./-]{0,24}){0,4} ){0,6}+ (?:[ ]?[-–][ ]?\d{3}[ ]?\d{3})? )
    (?![\w/])""",
)

_WORD = r"[^\W\d_][\w'’-]{0,24}\.?"

_NUMBER_LAST = r"(?P<number>\d{1,5}[A-Za-z]?(?:[/-]\d{1,4}[A-Za-z]?)?)(?![\w:%]|[.,/-]\d)"

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


# A city, a region and a country, one word after the other or on lines of their own, up to a postal number.
_UP_TO_POSTCODE = rf"(?: (?:[\s,>(]{{1,8}} {_WORD} \)? ){{1,6}} [\s,>]{{1,8}} \d{{4,6}} (?![\w.,]\d|\w) )"

street_address_number_last = pattern(
    "ADDRESS",
    rf"""(?<![\w.'’-]) (?:\d{{1,6}},?\s{{1,2}})?
    (?: {_STREET_BEFORE} \s (?:{_WORD}\s){{1,4}}? ,?
      | (?:[A-Z][\w'’-]{{0,24}}\s){{0,2}}? [A-ZÀ-ÖØ-ÞŁŚŠŽČ][^\W\d_]{{2,24}}{_STREET_ENDING} \s
      | (?:[A-Z][\w'’.-]{{0,24}}\s){{1,3}} {_STREET_AFTER} \s )
    {_NUMBER_LAST} {_REST}""",
    check=lambda match: _YEAR.fullmatch(match["number"]) is None,
)

flat_or_suite = pattern(
    "ADDRESS",
    r"(?i)(?<!\w) (?:apt|apartment|suite|ste)\.? \s{1,2} \#?[A-Za-z]?[0-9]{1,5}[A-Za-z]? (?!\w)",
)

_FLAT_NUMBER = r"(?i:apt|apartment|suite|ste|unit|flat)\.?\s{1,2}\#?[A-Za-z]?\d{1,5}[A-Za-z]?(?!\w)"


# A house with its street, then a flat: the flat gives away what the words before it are.
address_around_flat = pattern(
    "ADDRESS",
    rf"""(?<![\w.,$€£/-]) \d{{1,6}},? [ ]{{1,2}} (?:{_WORD} [ ]{{1,2}}){{0,4}} {_WORD}
    (?:[ ]{{1,2}}\d{{1,5}}[A-Za-z]?\.?)? (?: [\s,>]{{1,8}} {_FLAT_NUMBER} ){{1,2}} {_UP_TO_POSTCODE}?""",
)


# Post offices of the US forces abroad.
military_address = pattern(
    "ADDRESS",
    r"""(?i)(?<!\w)
    (?: (?:psc|cmr|unit)\s\d{1,5},?\s(?:box\s\d{1,5},?\s{1,3})?
      | us(?:ns|s|nv|cgc)\s[\w-]{2,24}(?:\s[\w-]{2,24})?,?\s{1,3} )?
    [AFD]PO,?\s{1,2}A[AEP],?\s{1,2}\d{5}(?:-\d{4})?(?!\w)""",
)

post_box = pattern(
    "ADDRESS",
    r"(?i)(?<!\w) (?: p\.?\s?o\.?\s?box | psc\s\d{1,5},?\sbox ) \s{1,2} \#?[0-9]{1,7} (?!\w)",
)

_UK = r"(?:[A-Z]{1,2}[0-9][A-Z0-9]?\s[0-9][A-Z]{2})"

_CANADA = r"(?:[ABCEGHJ-NPR-TVXY][0-9][A-Z]\s[0-9][A-Z][0-9])"


# The Netherlands; Poland; Sweden, Greece and others; the United States, Japan; then most of the world.
_POSTCODE = (
    rf"(?: [0-9]{{4}}[ ](?-i:[A-Z]{{2}}) | [0-9]{{2}}-[0-9]{{3}} | [0-9]{{3}}[ ][0-9]{{2}} | [0-9]{{3}}-[0-9]{{4}}"
    rf"| [0-9]{{5}}-[0-9]{{3,4}} | [0-9]{{4,6}} | {_UK} | {_CANADA} )"
)

zip_in_context = pattern(
    "ZIP",
    rf"(?i)(?<!\w) (?:zip(?:\s?-?code)?|post(?:al)?\s?code) (?!\w) (?:\s(?:on\sfile|there|number))? \s{{0,2}}"
    rf"(?:[:=\#-]|is|was)? \s{{0,2}} (?P<value> {_POSTCODE} ) (?![\w-])",
)

zip_after_state = pattern("ZIP", rf"(?<!\w) {_STATE_CODES} ,?\s{{1,2}} (?P<value>{_ZIP})")


# An Irish one mixes letters and digits in its second half, or "A12 2019" would be one.
_IRELAND = r"(?:[AC-FHKNPRTV-Y][0-9][0-9W]\s(?=[A-Z]{1,3}[0-9]|[0-9]{1,3}[A-Z])[0-9AC-FHKNPRTV-Y]{4})"

postcode = pattern("ZIP", rf"(?<!\w) (?:{_UK}|{_CANADA}|{_IRELAND}) (?!\w)")

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
    rf"""(?i)(?<![\w.,/-]) (?:
        (?P<latitude>{_SIGN}\d{{1,2}}\.\d{{4,15}}) (?:\s?[,;/|]\s{{0,2}}|\s{{1,2}})
          (?P<longitude>{_SIGN}\d{{1,3}}\.\d{{4,15}})
        (?! \w | [.,;]?\s?{_SIGN}\d{{1,3}}\.\d{{2}} )
      | {_DMS} (?: \s?[,;/|]?\s{{0,2}} {_DMS} )?
      | {_SIDED} \s?[,;/|]?\s{{0,2}} {_SIDED} )""",
    check=_on_the_earth,
)

coordinates_in_context = pattern(
    "COORDINATES",
    rf"""(?i)(?<![A-Za-z0-9]) {either("coordinates")} (?!\w) ["']?
    (?:\s(?:is|are|was|at|location|position|coordinates|coords))?
    \s{{0,2}} [:=(@]? \s{{0,2}} ["'(\[]?
    (?P<value> {_SIGN}\d{{1,3}}\.\d{{1,15}} (?: \s?[,;/]\s? {_SIGN}\d{{1,3}}\.\d{{1,15}} | (?<=\.\d\d\d)\d{{0,12}}
      | (?<=\.\d\d) ) [°º]? ) (?![\w%]|\.\d)""",
)
