"""Street addresses, ZIP codes and postcodes."""

import re

from atdp_cli.text.detection.function_words import function_words
from atdp_cli.text.detection.identifiers.recogniser import pattern

_STATE_CODES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|DC|FL|GA|HI|IA|ID|IL|IN|KS|KY|LA|MA|MD|ME|MI|MN|MO|MS|MT|NC|ND|NE|NH|NJ|NM|NV"
    "|NY|OH|OK|OR|PA|PR|RI|SC|SD|TN|TX|UT|VA|VT|WA|WI|WV|WY"
)
_STATE_NAMES = (
    r"alabama|alaska|arizona|arkansas|california|colorado|connecticut|delaware|florida|georgia|hawaii|idaho"
    r"|illinois|indiana|iowa|kansas|kentucky|louisiana|maine|maryland|massachusetts|michigan|minnesota"
    r"|mississippi|missouri|montana|nebraska|nevada|new\s(?:hampshire|jersey|mexico|york)"
    r"|(?:north|south)\s(?:carolina|dakota)|ohio|oklahoma|oregon|pennsylvania|rhode\sisland|tennessee|texas"
    r"|utah|vermont|(?:west\s)?virginia|washington|wisconsin|wyoming"
)
_STATE = rf"(?:(?:{_STATE_CODES})|(?i:{_STATE_NAMES}))"
_ZIP = r"[0-9]{5}(?:-[0-9]{4})?(?![\w-])"

_STREET = (
    r"(?:Street|St|Avenue|Ave|Av|Boulevard|Blvd|Road|Rd|Lane|Ln|Drive|Dr|Court|Ct|Circle|Cir|Place|Pl|Square|Sq"
    r"|Terrace|Ter|Parkway|Pkwy|Highway|Hwy|Way|Trail|Trl|Alley|Plaza|Loop|Row|Crescent|Close|Walk|Pike|Mews"
    r"|Gardens|Gdns"
    r"|Grove|Crossing|Ridge|Turnpike|Tpke|Freeway|Fwy|Expressway|Expy|Quay|Wharf|Esplanade|Parade|Promenade|Heights|Hts"
    r"|Cove|Bend)"
)
_FLAT = r"(?i:apt|apartment|suite|ste|unit|flat|room|rm)\.?\s?\#?\s?[A-Za-z]?[0-9]{0,5}[A-Za-z]?(?!\w)"
_REST = rf"""
    (?: (?:,|\.)?\s{{1,2}} {_FLAT} | ,?\s{{1,2}}\#\s?\d{{1,5}} )?
    (?: (?:,|\.)?\s{{1,3}} (?:[^\W\d_][\w'.-]{{1,24}}\s{{1,2}}){{0,2}} [^\W\d_][\w'.-]{{1,24}} ,?\s{{1,2}} {_STATE}
        (?!\w) (?: ,?\s{{1,2}} {_ZIP} )? )?
    (?: ,?\s{{1,3}} {_STATE} (?!\w) (?: ,?\s{{1,2}} {_ZIP} )? | ,\s{{1,2}} {_ZIP} )?
"""
# The same in lower case.
_STREET_WORDS = frozenset(re.findall("[a-z]+", _STREET.lower()))
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
    words=_STREET_WORDS,
)

# France, Belgium, Switzerland and Quebec: the number, then the kind of street, then its name.
street_address_french = pattern(
    "ADDRESS",
    rf"""{_NUMBER} ,?\s{{1,2}} (?:(?:bis|ter),?\s{{1,2}})?
    (?i:rue|avenue|boulevard|bd|chemin|allée|quai|impasse|ruelle|sentier|passage|faubourg|cours|place|route)
    (?: \s{{1,2}}(?:de|du|des|la|le|les|à|au|aux|en|sur) | \s{{1,2}}(?:d|l)['’] ){{0,3}}
    (?: (?:\s{{1,2}}|(?<=['’])) [A-ZÀ-ÖØ-Þ][\w'’.-]{{0,24}} ){{1,3}} (?<!\.) {_REST}""",
    # Of "allée" the letters from a to z are "all" and "e".
    words=(
        *(
            "rue",
            "avenue",
            "boulevard",
            "bd",
            "chemin",
            "all",
            "quai",
            "impasse",
            "ruelle",
            "sentier",
            "passage",
            "faubourg",
        ),
        *("cours", "place", "route"),
    ),
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
    words=("highway", "hwy", "route", "rte", "road", "rd", "fm", "rr", "r", "hc"),
)

# Words that follow a number and come before "road" or "lane" without naming it.
_NOT_A_NAME = frozenset(
    {"minute", "minutes", "mile", "miles", "lane", "way", "car", "block", "blocks", "people"}
    | {"year", "years", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "metre", "meter", "foot"}
)

street_address_lower_case = pattern(
    "ADDRESS",
    rf"""{_NUMBER} \s{{1,2}} (?P<name>[a-z][a-z'’-]{{1,24}}|{_ORDINAL}) (?:\s{{1,2}}[a-z][a-z'’-]{{1,24}})?
    \s{{1,2}} (?:street|st|avenue|ave|boulevard|blvd|road|rd|lane|ln|mews|crescent|terrace|gardens|grove) (?!\w)
    \.? {_REST}""",
    check=lambda match: match["name"] not in _NOT_A_NAME | function_words(),
    words=_STREET_WORDS,
)

# A flat, then its house: flat 6 hollis court.
flat_in_house = pattern(
    "ADDRESS",
    rf"""(?<!\w) (?:flat|apt|apartment|unit)\.?[ ]{{1,2}}\#?[a-z]?\d{{1,4}}[a-z]?,?[ ]{{1,2}}
    (?:\d{{1,4}}[a-z]?,?[ ]{{1,2}})? (?P<name>[^\W\d_][\w'’-]{{1,24}})[ ]{{1,2}}
    (?:[^\W\d_][\w'’-]{{1,24}}[ ]{{1,2}})?
    (?:court|house|close|mews|mansions|lodge|tower|heights|gardens|terrace|street|st|road|rd|lane|avenue|ave)
    (?!\w) {_REST}""",
    flags=re.IGNORECASE,
    check=lambda match: match["name"].lower() not in _NOT_A_NAME | function_words(),
    words=("flat", "apt", "apartment", "unit"),
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

_FLATS = ("apt", "apartment", "suite", "ste", "unit", "flat")

flat_or_suite = pattern(
    "ADDRESS",
    r"(?<!\w) (?:apt|apartment|suite|ste)\.? \s{1,2} \#?[A-Za-z]?[0-9]{1,5}[A-Za-z]? (?!\w)",
    flags=re.IGNORECASE,
    words=_FLATS,
)

_FLAT_NUMBER = r"(?i:apt|apartment|suite|ste|unit|flat)\.?\s{1,2}\#?[A-Za-z]?\d{1,5}[A-Za-z]?(?!\w)"

# A house with its street, then a flat: the flat gives away what the words before it are.
address_around_flat = pattern(
    "ADDRESS",
    rf"""(?<![\w.,$€£/-]) \d{{1,6}},? [ ]{{1,2}} (?:{_WORD} [ ]{{1,2}}){{0,4}} {_WORD}
    (?:[ ]{{1,2}}\d{{1,5}}[A-Za-z]?\.?)? (?: [\s,>]{{1,8}} {_FLAT_NUMBER} ){{1,2}} {_UP_TO_POSTCODE}?""",
    words=_FLATS,
)

# Post offices of the US forces abroad.
military_address = pattern(
    "ADDRESS",
    r"""(?<!\w)
    (?: (?:psc|cmr|unit)\s\d{1,5},?\s(?:box\s\d{1,5},?\s{1,3})?
      | us(?:ns|s|nv|cgc)\s[\w-]{2,24}(?:\s[\w-]{2,24})?,?\s{1,3} )?
    [AFD]PO,?\s{1,2}A[AEP],?\s{1,2}\d{5}(?:-\d{4})?(?!\w)""",
    flags=re.IGNORECASE,
    words=("apo", "fpo", "dpo"),
)

post_box = pattern(
    "ADDRESS",
    r"(?<!\w) (?: p\.?\s?o\.?\s?box | psc\s\d{1,5},?\sbox ) \s{1,2} \#?[0-9]{1,7} (?!\w)",
    flags=re.IGNORECASE,
    words=("box", "pobox", "obox"),
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
    rf"(?<!\w) (?:zip(?:\s?-?code)?|post(?:al)?\s?code) (?!\w) (?:\s(?:on\sfile|there|number))? \s{{0,2}}"
    rf"(?:[:=\#-]|is|was)? \s{{0,2}} (?P<value> {_POSTCODE} ) (?![\w-])",
    flags=re.IGNORECASE,
    words=("zip", "zipcode", "post", "postal", "postcode", "postalcode"),
)

zip_after_state = pattern("ZIP", rf"(?<!\w) (?:{_STATE_CODES}) ,?\s{{1,2}} (?P<value>{_ZIP})")

# An Irish one mixes letters and digits in its second half, or "A12 2019" would be one.
_IRELAND = r"(?:[AC-FHKNPRTV-Y][0-9][0-9W]\s(?=[A-Z]{1,3}[0-9]|[0-9]{1,3}[A-Z])[0-9AC-FHKNPRTV-Y]{4})"

postcode = pattern("ZIP", rf"(?<!\w) (?:{_UK}|{_CANADA}|{_IRELAND}) (?!\w)")
