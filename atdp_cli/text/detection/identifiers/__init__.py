"""Structured identifiers: patterns and checksums that need no language model.

To add one, write a row in a module's table or a function of type `Recogniser` in a file of its own, and
list it below; docs/identifiers.md shows how. Where several find the same characters, `spans.merge` chooses the label.
"""

from atdp_cli.text.detection.identifiers import (
    accounts,
    contact,
    dates,
    money,
    national,
    network,
    numbers,
    people,
    places,
    secrets,
)
from atdp_cli.text.detection.identifiers.found import Recogniser, Recognisers, pattern

RECOGNISERS: tuple[Recogniser, ...] = (
    contact.email,
    contact.email_spelled_out,
    contact.phone,
    contact.phone_shape,
    contact.phone_international,
    contact.phone_in_context,
    contact.phone_before_its_kind,
    contact.phone_trunk,
    contact.phone_pairs,
    contact.phone_area,
    contact.phone_blocks,
    money.payment_card,
    money.payment_card_dotted,
    money.payment_card_in_context,
    money.iban,
    money.iban_in_context,
    people.social_security_number,
    people.social_security_number_in_context,
    *national.NUMBERS.values(),
    national.insurance_number,
    people.date_of_birth,
    people.date_of_birth_abroad,
    people.name_after_title,
    people.name_introduced,
    dates.numeric_date,
    dates.numeric_date_year_last,
    network.ipv4,
    network.ipv6,
    network.mac,
    network.mac_in_context,
    network.url_with_credentials,
    network.url_with_token,
    places.street_address,
    places.street_address_lower_case,
    places.numbered_road,
    places.street_address_french,
    places.street_address_number_last,
    places.flat_or_suite,
    places.address_around_flat,
    places.military_address,
    places.post_box,
    places.zip_in_context,
    places.zip_after_state,
    places.postcode,
    accounts.username,
    accounts.account,
    accounts.ending,
    accounts.social_handle,
    accounts.code,
    accounts.password,
    accounts.pin,
    *secrets.KEYS.values(),
    secrets.private_key,
    secrets.putty_key,
    numbers.digits,
    numbers.spaced_digits,
)
"""All recognisers, in the order in which they run."""

LABELS = frozenset(
    {"ACCOUNT", "ADDRESS", "API_KEY", "CODE", "CREDIT_CARD", "DATE", "DATE_OF_BIRTH", "EMAIL"}
    | {
        "IBAN",
        "IP_ADDRESS",
        "JWT",
        "MAC_ADDRESS",
        "NATIONAL_ID",
        "NUMBER",
        "PASSWORD",
        "PERSON",
        "PHONE",
        "PRIVATE_KEY",
        "SSN",
    }
    | {"URL_CREDENTIALS", "USERNAME", "ZIP"}
)
"""Every label that they give."""

__all__ = ["LABELS", "RECOGNISERS", "Found", "Recogniser", "Recognisers", "pattern"]
