"""Identity, tax and social insurance numbers: of many countries by their check digits, of two by their shape."""

import re
from importlib import import_module
from typing import NamedTuple

from atdp_cli.detection.identifiers.recogniser import Recogniser, pattern

_BEFORE, _AFTER = 64, 20  # how far from the number the word that names it may stand, that word included


class NationalId(NamedTuple):
    """One kind of number.

    Attributes:
        module: Of python-stdnum; its `is_valid` holds the check digits and, where there is one, the date.
        shape: What the number looks like, as a verbose regular expression.
        words: What people call the number, one of which must stand near it on its line. Empty where shape and
            check digits together are rare enough among other numbers.
        telling: The spellings, among those of `shape`, that need no word.
    """

    module: str
    shape: str
    words: str = ""
    telling: str = ""


ROWS: tuple[NationalId, ...] = (
    # Brazil, Cadastro de Pessoas Físicas.
    NationalId("br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d | \d{9}-?\d\d", "cpf", telling=r"\d{3}\.\d{3}\.\d{3}-\d\d"),
    # Argentina, CUIT and CUIL.
    NationalId("ar.cuit", r"(?:2[03-7]|3[034])(?P<dash>-?)\d{8}(?P=dash)\d", r"cui[tl]"),
    # Chile, Rol Único Tributario.
    NationalId(
        "cl.rut",
        r"\d{1,2}\.\d{3}\.\d{3}-[\dK] | \d{7,8}-?[\dK]",
        r"rut|(?-i:RUN)|rol\súnico",
        telling=r"\d{1,2}\.\d{3}\.\d{3}-[\dK]",
    ),
    # Mexico, Clave Única de Registro de Población.
    NationalId("mx.curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d"),
    # Canada, social insurance number. In lower case, "sin" is a word.
    NationalId("ca.sin", r"\d{3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{3}", r"(?-i:SIN|S\.I\.N\.?)|social\sinsurance"),
    # United Kingdom, National Health Service.
    NationalId("gb.nhs", r"\d{3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{4}", r"nhs|national\shealth\sservice"),
    # Ireland, Personal Public Service number.
    NationalId("ie.pps", r"\d{7}[A-W][A-IW]?", r"ppsn?|personal\spublic\sservice"),
    # France, numéro de sécurité sociale.
    NationalId("fr.nir", r"[1-478][ ]?\d\d[ ]?\d\d[ ]?(?:\d\d|2[AB])[ ]?\d{3}[ ]?\d{3}[ ]?\d\d"),
    # Spain, DNI and, for foreigners, NIE.
    NationalId("es.dni", r"\d{8}-?[A-Z] | \d\d\.\d{3}\.\d{3}[ -]?[A-Z]"),
    NationalId("es.nie", r"[XYZ][ -]?\d{7}-?[A-Z]"),
    # Portugal, citizen card and tax number.
    NationalId("pt.cc", r"\d{8}[ ]?\d[ ]?[A-Z0-9]{2}\d", r"cc|cart[ãa]o\sde\scidad[ãa]o|citizen\scard"),
    NationalId("pt.nif", r"\d{3}(?P<mark>[ ]?)\d{3}(?P=mark)\d{3}", r"nif|contribuinte"),
    # Italy, codice fiscale.
    NationalId(
        "it.codicefiscale",
        r"[A-Z]{3}[ ]?[A-Z]{3}[ ]?[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[ ]?[A-Z][0-9LMNP-V]{3}[A-Z]",
    ),
    # Switzerland, AHV and AVS.
    NationalId("ch.ssn", r"756(?P<mark>[. ]?)\d{4}(?P=mark)\d{4}(?P=mark)\d\d"),
    # Germany, steuerliche Identifikationsnummer.
    NationalId(
        "de.idnr",
        r"[1-9]\d(?P<mark>[ ]?)\d{3}(?P=mark)\d{3}(?P=mark)\d{3}",
        r"steuer-?\s?(?:id|identifikationsnummer|nummer)(?:-nr\.?)?|id-?nr|tax\s(?:id|number)",
    ),
    # Netherlands, burgerservicenummer.
    NationalId("nl.bsn", r"\d{9} | \d{4}[. ]\d\d[. ]\d{3} | \d{3}[. ]\d{3}[. ]\d{3}", r"bsn|burgerservicenummer|sofi"),
    # Belgium, national register number.
    NationalId(
        "be.nn",
        r"\d\d[.]?\d\d[.]?\d\d[ -]?\d{3}[. ]?\d\d",
        r"rijksregister(?:nummer)?|registre\snational|num[ée]ro\snational|national\s(?:register|number)|niss|insz|nrn",
        telling=r"\d\d\.\d\d\.\d\d-\d{3}[. ]\d\d",
    ),
    # Sweden, Norway, Finland, Iceland. With its hyphen and a date in it the Swedish one needs no word.
    NationalId(
        "se.personnummer",
        r"(?:\d\d)?\d{6}[-+]?\d{4}",
        r"personnummer|personal\s(?:identity|id)|swedish\sid",
        telling=r"(?:\d\d)?\d{6}[-+]\d{4}",
    ),
    NationalId("no.fodselsnummer", r"\d{6}[ ]?\d{5}", r"f[øo]dselsnummer|personnummer|norwegian\sid|national\sid"),
    NationalId("fi.hetu", r"\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]"),
    NationalId("is_.kennitala", r"\d{6}-?\d{4}", r"kennital[au]|kt\."),
    # Poland, Romania, Bulgaria, Croatia, Slovenia, Estonia.
    NationalId("pl.pesel", r"\d{11}", r"pesel"),
    NationalId("ro.cnp", r"\d{13}", r"cnp|cod\snumeric\spersonal"),
    NationalId("bg.egn", r"\d{6}[ ]?\d{3}[ ]?\d", r"egn|егн"),
    NationalId("hr.oib", r"\d{11}", r"oib"),
    NationalId("si.emso", r"\d{13}", r"em[šs]o|jmbg"),
    NationalId("ee.ik", r"[1-8]\d{10}", r"isikukood|personal\scode"),
    # Czechia, rodné číslo.
    NationalId("cz.rc", r"\d{6}/?\d{4}", r"rodn[ée]\s[čc][íi]slo|r\.?\s?[čc]\.", telling=r"\d{6}/\d{4}"),
    # Greece, AMKA.
    NationalId("gr.amka", r"\d{11}", r"amka|αμκα"),
    # Turkey, T.C. Kimlik No.
    NationalId("tr.tckimlik", r"[1-9]\d{10}", r"(?:t\.?c\.?\s)?kimlik|tckn"),
    # South Africa.
    NationalId(
        "za.idnr",
        r"\d{6}[ ]?\d{4}[ ]?\d{3}",
        r"(?:sa|rsa|south\safrican)\sid|(?:identity|id)\s(?:number|no|document)|id",
    ),
    # Israel, teudat zehut.
    NationalId("il.idnr", r"\d{7,8}-?\d", r"(?:teudat|te'udat)\szehut|israeli\sid|t\.?z\."),
    # India, Aadhaar.
    NationalId("in_.aadhaar", r"[2-9]\d{3}(?P<mark>[ -]?)\d{4}(?P=mark)\d{4}", r"aadhaar|aadhar|uidai|uid"),
    # China and South Korea: a date of birth and a check digit.
    NationalId("cn.ric", r"[1-9]\d{16}[0-9X]"),
    NationalId("kr.rrn", r"\d{6}-\d{7}"),
    # Japan, My Number.
    NationalId(
        "jp.in_", r"\d{4}(?P<mark>[ -]?)\d{4}(?P=mark)\d{4}", r"my\snumber|mynumber|individual\snumber|マイナンバー"
    ),
    # Australia and New Zealand, tax file numbers.
    NationalId("au.tfn", r"\d{3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{2,3}", r"(?-i:TFN)|tax\sfile"),
    NationalId("nz.ird", r"\d{2,3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{3} | \d{7,8}-\d", r"(?-i:IRD)|inland\srevenue"),
)


def identity_number(row: NationalId) -> Recogniser:
    """A recogniser for the numbers of one row."""
    module, shape, words, telling = row
    before = re.compile(rf"(?<!\w)(?:{words})(?!\w)[^\d\n]{{0,24}}\Z", re.IGNORECASE)
    after = re.compile(
        rf"[\s,;(-]{{0,3}}(?:(?:is|as)\s)?(?:(?:my|his|her|their|the)\s)?(?:{words})(?!\w)", re.IGNORECASE
    )
    alone = re.compile(telling or shape, re.VERBOSE | re.IGNORECASE)

    def named(match: re.Match[str]) -> bool:
        start, end = match.span("value")
        return (
            before.search(match.string, max(0, start - _BEFORE), start) is not None
            or after.match(match.string, end, end + _AFTER) is not None
        )

    def holds(match: re.Match[str]) -> bool:
        telling_shape = (telling or not words) and alone.fullmatch(match["value"]) is not None
        return (telling_shape or named(match)) and bool(import_module(f"stdnum.{module}").is_valid(match["value"]))

    expression = rf"(?i)(?<![\w.,/$€£-]) (?P<value>{shape}) (?![\w/-] | [.,:]\w)"
    return pattern("NATIONAL_ID", expression, check=holds)


NUMBERS: dict[str, Recogniser] = {row.module: identity_number(row) for row in ROWS}


# United Kingdom, national insurance: no check digit, but few pairs of letters begin one.
insurance_number = pattern(
    "NATIONAL_ID",
    r"""(?<![\w-]) (?!BG|GB|KN|NK|NT|TN|ZZ) [A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]
    (?P<mark>[ ]?)\d\d(?P=mark)\d\d(?P=mark)\d\d(?P=mark)[A-D] (?![\w-])""",
)


def _issued(match: re.Match[str]) -> bool:
    """Whether a social security number could have been issued (or, from 9, a taxpayer number)."""
    area, group, serial = match["area"], match["group"], match["serial"]
    return area not in ("000", "666") and group != "00" and serial != "0000"


social_security_number = pattern(
    "SSN",
    r"(?<![\w-]) (?P<area>[0-9]{3}) (?P<mark>[ .–-]) (?P<group>[0-9]{2}) (?P=mark) (?P<serial>[0-9]{4})"
    r"(?! \w | [ .–-]\d)",
    check=_issued,
)

social_security_number_in_context = pattern(
    "SSN",
    r"(?i)(?<!\w) (?:ssn|s\.s\.n\.|social\ssecurity(?:\s(?:number|num|no\.?|\#))? | [x*]{3}[ -]?[x*]{2}) (?!\w)"
    r"[^\d\n]{0,24}"
    r"(?P<value> [0-9]{3}[ .–-]?[0-9]{2}[ .–-]?[0-9]{4} | (?<![$€£])(?!(?:1[5-9]|20)[0-9]{2}(?!\d))[0-9]{4} )"
    r"(?! \w | [.,–-]\d )",
)
