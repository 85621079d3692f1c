"""The time that a recogniser takes grows with the length of the text and no faster, whatever the text is."""

import pytest

from atdp_cli.detection.identifiers import RECOGNISERS
from atdp_cli.detection.plain_copy import plain_copy
from tests.growth import drained, repeated, too_slow

SEEDS = [
    "a", "1", "A", "@", "a@", "a.", "a'", "1 ", "1-", "12 ", "1234 ", "+1", "(1", "1:", "::", "f:", ".", "://",
    "a://b:",
    "a://b:c@", "eyJ", "eyJa.", "eyJaaaaaaaa.eyJ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "AA11 A ", "AA11",
    "account ", "account id is ", "username is ", "password is a", "born on ", "zip ", "1 A A A A ", "1 Aa Aa ",
    "1 a b ", "1 Main St, Aa Aa Aa ", "xox", "gh", "AKIA", "A1", "٠", " ", "\n", "call 1 ", "1.1.1.", "00:",
    "4111 1111 1111 1111 ", "Via A ", "Rue ", "Aastraße ", "1 A\n", "1 A Apt 1 ", "1 A Apt 1 A-A ", "APO ", "card ",
    "iban ", "IBAN AA11 AAAA ", "IBAN AA11A", "ssn ", "2010-05-12 ", "1/2/", "01 23 ", "12-34-", "Unit 1 ", "USS a ",
    "mr ", "my name is ", "Aa", "1 Main St\n", "+1 2 3 4 5 6 7 8 9 ", "555-123-4567 ", "é", "AL 1", "\ud800", "aA1_-",
    "-", "(", ")", "/", "_", "=", "\t", "a ", "A ", "1.", "1, ", "(11) ", "943 476 5919 ", "NHS 943 476 5918 ", "id ",
    "cpf ", "756.1234.5678.97", "01017000019", "ID 880320-0018 ", "a at b dot ", "a [at] b.", "at ", "dot ", "?token=a",
    "?token=", "api_key = a1", "api_key = ", "authorization: bearer a", "sk-a", "sk-a1", "glpat-a", "hf_", "SG.a",
    "SG.aaaaaaaaaaaaaaaa.a", "AC0", "12345678:AA", "Private-Lines: 1\n", "Private-Lines: 1\nAAAAAAAAAAAAAAAAAAAA\n",
    "-----BEGIN PRIVATE KEY-----\nComment: a\n", "Comment: a\n", "last four of ", "card ending in ", "twitter: a",
    "twitter @a.", "pin code ", "PIN 1", "1 US Highway 1 ", "RR 1 Box ", "geboren am ", "born on 1 ", "mac 0:",
    "AB123456", "1 A 1@a.b:2-3/4 ", "MDFRRN", "GOLM85", "ABCABC80A", "2 95 10 99 126 111 9", "X1234567", "٣٤ ",
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "bc1q", "0x", "seed: a", "seed: abc abc ", "seed phrase: abc,abc,",
    "1.1234, ", "1° 1' 1\" N ",
    "lat: 1.12, ", "plate AB", "plate A-1-", "vin A1-", "a.local", "a.a-", "srv-a-", "host a-1-", "https://a/a/",
    "a.a/~a/users/", "/reset/",
    "https://x.com/reset/a/", "?user=", "@a.", "a_1: ", "pin 1234 ", "pin is 1234, ", "password is a1, old one is ",
    "try aA1_ ", "a1!",
    "answer to my security question ", "diagnosed with a ", "allergic to abc ", "dx: abc abc", "asthma ",
    "metformin 1 mg ", "my cold ",
    "c. ", "mrn 1 ", "mrn A1-", "34 yo ", "aged 1 ", "$1,000 ", "$1 000 ", "salary 1 ", "rent $1,", "1 eur ",
    "1,000k ", "exp 01/2",
    "a dot ", "a 1 ", "a @ ", "a . ", "a[@]a.", "cvv ", "4111 1111 1111 1111 01/27 ", "nickname is a",
    "seizure of the ",
    "name: a ", "first_name=", "a_", "a_a=", 'token: "a', "last name: a b c d ", "<a>", "<a b=", "<first_name>",
    "&amp;", "&#1;", "%20", "%C3%A9", "\\n", "\\u00e9", "\x1b[1m", "a[.]", "e\u0301", "\u200b", "1\t", "123\t45\t",
    "GB82\tWEST\n", "1 年", "1 I 2", "due 1/", "flat no. 1, a ", "H.No. 1/", "a van der ", "maria de ", "/home/a",
    "login a password ", "uid=1(a", "aA1bB2cC3", "dop_v1_a1",
]  # fmt: skip


@pytest.mark.deep  # tests/security/test_expressions.py has a coarser look at other texts
@pytest.mark.parametrize("seed", SEEDS)
def test_no_text_makes_a_recogniser_slow(seed: str) -> None:
    assert [
        place for place, recogniser in enumerate(RECOGNISERS) if too_slow(drained(recogniser), repeated(seed))
    ] == []


@pytest.mark.one_in(8)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_text_makes_its_plain_copy_slow(seed: str) -> None:
    assert not too_slow(plain_copy, repeated(seed))


@pytest.mark.ci
def test_the_measure_tells_quadratic_from_linear() -> None:
    assert too_slow(lambda text: [end for end in range(len(text)) if text[:end].count("1 1")], repeated("a"))
    assert not too_slow(lambda text: [at for at in range(len(text)) if hash(text[at : at + 9])], repeated("a"))
