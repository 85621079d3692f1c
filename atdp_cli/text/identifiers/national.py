"""Identity, tax and social insurance numbers of many countries, by their check digits."""

import re
from importlib import import_module
from typing import NamedTuple

from atdp_cli.text.identifiers.found import Recogniser, pattern

_BEFORE, _AFTER = 64, 20  # how far from the number the word that names it may stand, that word included


class Row(NamedTuple):
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


ROWS: tuple[Row, ...] = (
    # Brazil, Cadastro de Pessoas Físicas.
    Row("br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d | \d{9}-?\d\d", "cpf", telling=r"\d{3}\.\d{3}\.\d{3}-\d\d"),
    # Argentina, CUIT and CUIL.
    Row("ar.cuit", r"(?:2[03-7]|3[034])(?P<dash>-?)\d{8}(?P=dash)\d", r"cui[tl]"),
    # Chile, Rol Único Tributario.
    Row(
        "cl.rut",
        r"\d{1,2}\.\d{3}\.\d{3}-[\dK] | \d{7,8}-?[\dK]",
        r"rut|(?-i:RUN)|rol\súnico",
        telling=r"\d{1,2}\.\d{3}\.\d{3}-[\dK]",
    ),
    # Mexico, Clave Única de Registro de Población.
    Row("mx.curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d"),
    # Canada, social insurance number. In lower case, "sin" is a word.
    Row("ca.sin", r"\d{3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{3}", r"(?-i:SIN|S\.I\.N\.?)|social\sinsurance"),
    # United Kingdom, National Health Service.
    Row("gb.nhs", r"\d{3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{4}", r"nhs|national\shealth\sservice"),
    # Ireland, Personal Public Service number.
    Row("ie.pps", r"\d{7}[A-W][A-IW]?", r"ppsn?|personal\spublic\sservice"),
    # France, numéro de sécurité sociale.
    Row("fr.nir", r"[1-478][ ]?\d\d[ ]?\d\d[ ]?(?:\d\d|2[AB])[ ]?\d{3}[ ]?\d{3}[ ]?\d\d"),
    # Spain, DNI and, for foreigners, NIE.
    Row("es.dni", r"\d{8}-?[A-Z] | \d\d\.\d{3}\.\d{3}[ -]?[A-Z]"),
    Row("es.nie", r"[XYZ][ -]?\d{7}-?[A-Z]"),
    # Portugal, citizen card and tax number.
    Row("pt.cc", r"\d{8}[ ]?\d[ ]?[A-Z0-9]{2}\d", r"cc|cart[ãa]o\sde\scidad[ãa]o|citizen\scard"),
    Row("pt.nif", r"\d{3}(?P<mark>[ ]?)\d{3}(?P=mark)\d{3}", r"nif|contribuinte"),
    # Italy, codice fiscale.
    Row(
        "it.codicefiscale",
        r"[A-Z]{3}[ ]?[A-Z]{3}[ ]?[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[ ]?[A-Z][0-9LMNP-V]{3}[A-Z]",
    ),
    # Switzerland, AHV and AVS.
    Row("ch.ssn", r"756(?P<mark>[. ]?)\d{4}(?P=mark)\d{4}(?P=mark)\d\d"),
    # Germany, steuerliche Identifikationsnummer.
    Row(
        "de.idnr",
        r"[1-9]\d(?P<mark>[ ]?)\d{3}(?P=mark)\d{3}(?P=mark)\d{3}",
        r"steuer-?\s?(?:id|identifikationsnummer|nummer)(?:-nr\.?)?|id-?nr|tax\s(?:id|number)",
    ),
    # Netherlands, burgerservicenummer.
    Row("nl.bsn", r"\d{9} | \d{4}[. ]\d\d[. ]\d{3} | \d{3}[. ]\d{3}[. ]\d{3}", r"bsn|burgerservicenummer|sofi"),
    # Belgium, national register number.
    Row(
        "be.nn",
        r"\d\d[.]?\d\d[.]?\d\d[ -]?\d{3}[. ]?\d\d",
        r"rijksregister(?:nummer)?|registre\snational|num[ée]ro\snational|national\s(?:register|number)|niss|insz|nrn",
        telling=r"\d\d\.\d\d\.\d\d-\d{3}[. ]\d\d",
    ),
    # Sweden, Norway, Finland, Iceland. With its hyphen and a date in it the Swedish one needs no word.
    Row(
        "se.personnummer",
        r"(?:\d\d)?\d{6}[-+]?\d{4}",
        r"personnummer|personal\s(?:identity|id)|swedish\sid",
        telling=r"(?:\d\d)?\d{6}[-+]\d{4}",
    ),
    Row("no.fodselsnummer", r"\d{6}[ ]?\d{5}", r"f[øo]dselsnummer|personnummer|norwegian\sid|national\sid"),
    Row("fi.hetu", r"\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]"),
    Row("is_.kennitala", r"\d{6}-?\d{4}", r"kennital[au]|kt\."),
    # Poland, Romania, Bulgaria, Croatia, Slovenia, Estonia.
    Row("pl.pesel", r"\d{11}", r"pesel"),
    Row("ro.cnp", r"\d{13}", r"cnp|cod\snumeric\spersonal"),
    Row("bg.egn", r"\d{6}[ ]?\d{3}[ ]?\d", r"egn|егн"),
    Row("hr.oib", r"\d{11}", r"oib"),
    Row("si.emso", r"\d{13}", r"em[šs]o|jmbg"),
    Row("ee.ik", r"[1-8]\d{10}", r"isikukood|personal\scode"),
    # Czechia, rodné číslo.
    Row("cz.rc", r"\d{6}/?\d{4}", r"rodn[ée]\s[čc][íi]slo|r\.?\s?[čc]\.", telling=r"\d{6}/\d{4}"),
    # Greece, AMKA.
    Row("gr.amka", r"\d{11}", r"amka|αμκα"),
    # Turkey, T.C. Kimlik No.
    Row("tr.tckimlik", r"[1-9]\d{10}", r"(?:t\.?c\.?\s)?kimlik|tckn"),
    # South Africa.
    Row(
        "za.idnr",
        r"\d{6}[ ]?\d{4}[ ]?\d{3}",
        r"(?:sa|rsa|south\safrican)\sid|(?:identity|id)\s(?:number|no|document)|id",
    ),
    # Israel, teudat zehut.
    Row("il.idnr", r"\d{7,8}-?\d", r"(?:teudat|te'udat)\szehut|israeli\sid|t\.?z\."),
    # India, Aadhaar.
    Row("in_.aadhaar", r"[2-9]\d{3}(?P<mark>[ -]?)\d{4}(?P=mark)\d{4}", r"aadhaar|aadhar|uidai|uid"),
    # China and South Korea: a date of birth and a check digit.
    Row("cn.ric", r"[1-9]\d{16}[0-9X]"),
    Row("kr.rrn", r"\d{6}-\d{7}"),
    # Japan, My Number.
    Row("jp.in_", r"\d{4}(?P<mark>[ -]?)\d{4}(?P=mark)\d{4}", r"my\snumber|mynumber|individual\snumber|マイナンバー"),
    # Australia and New Zealand, tax file numbers.
    Row("au.tfn", r"\d{3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{2,3}", r"(?-i:TFN)|tax\sfile"),
    Row("nz.ird", r"\d{2,3}(?P<mark>[ -]?)\d{3}(?P=mark)\d{3} | \d{7,8}-\d", r"(?-i:IRD)|inland\srevenue"),
)


def identity(row: Row) -> Recogniser:
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
        told = alone.fullmatch(match["value"]) if telling or not words else None
        return (told is not None or named(match)) and bool(import_module(f"stdnum.{module}").is_valid(match["value"]))

    expression = rf"(?<![\w.,/$€£-]) (?P<value>{shape}) (?![\w/-] | [.,:]\w)"
    return pattern("NATIONAL_ID", expression, flags=re.IGNORECASE, check=holds)


NUMBERS: dict[str, Recogniser] = {row.module: identity(row) for row in ROWS}

# United Kingdom, national insurance: no check digit, but few pairs of letters begin one.
insurance_number = pattern(
    "NATIONAL_ID",
    r"""(?<![\w-]) (?!BG|GB|KN|NK|NT|TN|ZZ) [A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]
    (?P<mark>[ ]?)\d\d(?P=mark)\d\d(?P=mark)\d\d(?P=mark)[A-D] (?![\w-])""",
)
