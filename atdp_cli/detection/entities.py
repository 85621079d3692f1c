"""Entities found by something other than spaCy: labels, tiers, and the pipeline that wraps the finder."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from atdp_cli.corpus.spans import Range, Tier
from atdp_cli.detection.identifiers import IDENTIFIER_LABELS


class EntityMatch(NamedTuple):
    """Characters `start` to `end` (code points, end exclusive) of a text.

    Attributes:
        label: One of ours, from `label_of`.
        score: How sure its finder is, from 0 to 1.
    """

    start: int
    end: int
    label: str
    score: float


TextWords = tuple[str, Sequence[Range]]
"""A text and the places of spaCy's words in it, white space left out."""

FindEntities = Callable[[Sequence[TextWords]], list[list[EntityMatch]]]
"""Finds the entities of each text, in the order of the texts; what it finds in one depends on that one alone."""

_THEIRS = {
    "PERSON": "PER NAME PATIENT STAFF DOCTOR HCW FIRSTNAME FIRST_NAME GIVENNAME GIVEN_NAME MIDDLENAME MIDDLE_NAME "
    "LASTNAME LAST_NAME SURNAME PRIVATE_PERSON",
    "ORG": "ORGANIZATION ORGANISATION CORPORATION COMPANY COMPANYNAME COMPANY_NAME HOSPITAL HOSP PATORG",
    "LOC": "LOCATION",
    "GPE": "CITY STATE COUNTY COUNTRY",
    "FAC": "FACILITY",
    "ADDRESS": "STREET STREET_ADDRESS STREETADDRESS BUILDINGNUM PRIVATE_ADDRESS",
    "ZIP": "ZIPCODE ZIP_CODE POSTCODE POSTAL_CODE",
    "DATE": "DATE_TIME DATETIME PRIVATE_DATE",
    "DATE_OF_BIRTH": "DOB DATEOFBIRTH BIRTHDATE",
    "PHONE": "PHONE_NUMBER PHONENUMBER PHONE_NUM TELEPHONE TELEPHONENUM PRIVATE_PHONE",
    "EMAIL": "EMAIL_ADDRESS PRIVATE_EMAIL",
    "SSN": "US_SSN SOCIALNUM SOCIAL_SECURITY_NUMBER",
    "NATIONAL_ID": "US_ITIN US_PASSPORT US_DRIVER_LICENSE UK_NHS MEDICAL_LICENSE PASSPORT DRIVERLICENSENUM "
    "DRIVER_LICENSE IDCARDNUM TAXNUM",
    "CREDIT_CARD": "CREDITCARD CREDITCARDNUMBER CREDIT_CARD_NUMBER",
    "IBAN": "IBAN_CODE",
    "ACCOUNT": "US_BANK_NUMBER ACCOUNTNUM ACCOUNT_NUMBER ACCOUNTNUMBER BANK_ACCOUNT CRYPTO",
    "IP_ADDRESS": "IP IPV4 IPV6 IPADDRESS",
    "MAC_ADDRESS": "MAC",
    "USERNAME": "USER_NAME",
    "CODE": "ID UUID",
    "NORP": "NRP",
    "MISC": "MISCELLANEOUS",
    "URL": "PRIVATE_URL",
    "AGE": "",
}
"""Our label, and what other detectors call the same."""

LABEL_OF = {theirs: ours for ours, names in _THEIRS.items() for theirs in (ours, *names.split())}
"""Our label for each that is known; any other is kept."""

_LOW_ENTITIES = IDENTIFIER_LABELS | {"PERSON", "ORG", "LOC", "GPE", "FAC", "DATE"}

_LONGEST = 40
"""Characters of a label, as files of spans have it."""


def label_of(name: str) -> str:
    """Map another detector's label to ours. An unknown label becomes capitals, with only A-Z, 0-9 and _."""
    plain = re.sub(r"[^A-Z0-9_]", "_", name.upper())[:_LONGEST]
    if plain in LABEL_OF:
        return LABEL_OF[plain]
    return plain if plain[:1].isalpha() else f"L_{plain}"[:_LONGEST]


def entity_tier(label: str) -> Tier:
    """Return low-entity for people, organisations, places, dates and identifiers, and high-entity for others."""
    return Tier.LOW_ENTITY if label in _LOW_ENTITIES else Tier.HIGH_ENTITY


@dataclass(frozen=True, kw_only=True, eq=False)
class EntityPipeline:
    """A spaCy pipeline whose entities `find` gives; tokens, sentences and grammar are spaCy's.

    Attributes:
        pipeline: From `load_pipeline`.
        find: What finds the entities. It is sent to other processes.
        identity: Changes with anything that may change what is found.
        name: What reports call it.
    """

    pipeline: Any
    find: FindEntities
    identity: str
    name: str
