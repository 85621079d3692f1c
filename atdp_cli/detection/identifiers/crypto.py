"""Addresses, keys and seed phrases of crypto-currencies."""

import hashlib
import re
from collections.abc import Iterator

from atdp_cli.corpus.spans import Range
from atdp_cli.detection.identifiers.recogniser import either, pattern, recogniser

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

_BECH32_CONSTANTS = (1, 0x2BC830A3)  # BIP 173, and BIP 350 (bech32m)

_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)

_LONG = re.compile(r"[1-9A-HJ-NP-Za-km-z]{26,111}+")

_MONERO = re.compile(r"[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93}(?:[1-9A-HJ-NP-Za-km-z]{11})?")


@recogniser("CRYPTO")
def base58_address(text: str) -> Iterator[Range]:
    """Addresses and keys of Bitcoin, Litecoin, Dogecoin, Dash and Tron by their checksum; Monero's by their length."""
    for match in _LONG.finditer(text):
        start, end = match.span()
        around = text[max(start - 1, 0) : start] + text[end : end + 1]
        if any(character.isalnum() for character in around):
            continue
        if is_base58check(match[0]) or _MONERO.fullmatch(match[0]):
            yield start, end


def is_base58check(value: str) -> bool:
    """Whether the last four bytes are the first of the SHA-256 of the SHA-256 of the others.

    These are addresses (25 bytes), private keys (37, 38) and extended keys (82).
    """
    number = 0
    for character in value:
        number = number * 58 + _BASE58.index(character)
    ones = len(value) - len(value.lstrip("1"))
    decoded = bytes(ones) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    if len(decoded) not in (25, 37, 38, 82):
        return False
    return hashlib.sha256(hashlib.sha256(decoded[:-4]).digest()).digest()[:4] == decoded[-4:]


def is_bech32(value: str) -> bool:
    """Whether the six last characters are the checksum of the others, by BIP 173 or BIP 350."""
    if value not in (value.lower(), value.upper()):
        return False
    prefix, _, data = value.lower().rpartition("1")
    values = [ord(character) >> 5 for character in prefix] + [0] + [ord(character) & 31 for character in prefix]
    checksum = 1
    for each in values + [_BECH32.index(character) for character in data]:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ each
        for place, generator in enumerate(_GENERATORS):
            checksum ^= generator if top >> place & 1 else 0
    return checksum in _BECH32_CONSTANTS


# Bitcoin, Litecoin, Cardano, Cosmos; keys of Nostr; secret keys of age.
bech32_address = pattern(
    "CRYPTO",
    r"""(?i)(?<![A-Za-z0-9]) (?:bc|tb|bcrt|ltc|tltc|addr|stake|cosmos|osmo|npub|nsec|age-secret-key-)
    1 [02-9ac-hj-np-z]{20,110} (?![A-Za-z0-9])""",
    check=lambda match: is_bech32(match[0]),
)


# Ethereum and what copies it: an address; or a private key or a transaction.
hexadecimal_address = pattern("CRYPTO", r"(?<!\w) 0x[0-9A-Fa-f]{40} (?:[0-9A-Fa-f]{24})? (?!\w)")


# Where the text says so, an address without a checksum, such as Solana's, or with one that is wrong.
crypto_in_context = pattern(
    "CRYPTO",
    rf"""(?i)(?<!\w) {either("coins")} (?!\w) (?:\s(?:wallet|deposit|public|private|receiving))?
    (?:\s(?:address|addr\.?|key|account|id))? [^\w\n]{{0,4}} (?:(?:is|to|at|was)[ :]{{1,2}})?
    (?P<value> (?-i: (?=[A-Za-z]{{0,40}}[0-9]) (?=[a-z0-9]{{0,40}}[A-Z]) (?=[A-Z0-9]{{0,40}}[a-z])
        [1-9A-HJ-NP-Za-km-z]{{25,110}} ) | (?:0x)?[0-9a-f]{{40}} | (?:bc|ltc|addr)1[02-9ac-hj-np-z]{{20,110}} )
          (?!\w)""",
)

seed_phrase = pattern(
    "CRYPTO",
    r"""(?i)(?<!\w) (?:seed|recovery|mnemonic|backup|secret) (?:\s(?:phrase|words?|seed))? \s{0,2} (?:[:=]|is|was)
      \s{0,3} ["'“]?
    (?P<value> (?:(?:\d{1,2}[.)][ ])?[a-z]{3,8}[, \n]{1,2}){11,23} (?:\d{1,2}[.)][ ])?[a-z]{3,8} ) (?![\w,-]
      |[ ][a-z])""",
)
