"""Each recogniser alone: what it finds, and what only looks like it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import luhn as standard_luhn

from atdp_cli.text.identifiers import (
    LABELS,
    RECOGNISERS,
    Recogniser,
    accounts,
    contact,
    money,
    network,
    numbers,
    people,
    places,
    secrets,
)

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/=\nAAAA\n-----END RSA PRIVATE KEY-----"

# Where a text has no mark, all of it is to be found; otherwise what stands between ⟦ and ⟧.
POSITIVES: dict[Recogniser, list[str]] = {
    contact.email: [
        "write to ⟦josephb7@email.com⟧, or",
        "<⟦Jo.O'Brien+x_y@mail.sub-domain.co.uk⟧>",
        "mailto:⟦a@b.io⟧.",
        "'⟦a@b.io⟧'",
        "⟦josé@exämple.com⟧ ⟦b%c@d.museum⟧",
        "email ⟦phoenix802@ email.com⟧",
    ],
    contact.phone: [
        "ring ⟦212-456-7890⟧ or ⟦+44 20 7946 0958⟧ now",
        "⟦(415) 555-2671⟧",
        "⟦+1 415-555-2671 x22⟧",
        "⟦+49 30 901820⟧",
    ],
    contact.phone_shape: [
        "USR:⟦(791) 582-4288⟧",
        "⟦791-582-4288⟧ ⟦791.582.4288⟧ ⟦791 582 4288⟧",
        "⟦+1 (791) 582-4288⟧",
        "⟦001-518-640-0854⟧",
        "⟦345-899-3560x4587⟧ ⟦345-899-3560 ext. 12⟧.",
    ],
    contact.phone_international: ["at ⟦+41 (0)38 549 02 90⟧.", "⟦+919876543210⟧", "⟦+7 (999) 123-45-67⟧"],
    contact.phone_in_context: [
        "Call me at ⟦781 1704⟧!",
        "phone: ⟦0487 98 11 92⟧",
        "Her fax number is ⟦(37) 788-063⟧",
        "Tel. ⟦72 128 827⟧",
        "telephone ⟦555-0199⟧",
    ],
    money.payment_card: [
        "card ⟦4111 1111 1111 1111⟧ 123",
        "⟦4111-1111-1111-1111⟧, exp. 12/27",
        "⟦374744544168082⟧",
        "on 12 ⟦3747 445441 68082⟧",
        "⟦30059246683015⟧ ⟦6011595981133377⟧ ⟦180065008155082⟧",
        "⟦5555555555554444⟧ ⟦4652943034623769885⟧",
    ],
    money.iban: [
        "to ⟦GB82 WEST 1234 5698 7654 32⟧ please",
        "⟦DE89370400440532013000⟧.",
        "IBAN:⟦FR14 2004 1010 0505 0001 3M02 606⟧",
        "⟦gb82west12345698765432⟧ or ⟦NL91ABNA0417164300⟧",
    ],
    people.social_security_number: ["is ⟦494-33-0748⟧.", "⟦494 33 0748⟧", "SSN:⟦123.45.6789⟧", "⟦912-70-1234⟧"],
    people.date_of_birth: [
        "DOB: ⟦03/04/1980⟧",
        "d.o.b. ⟦1980-03-04⟧",
        "Date of birth is ⟦4 March 1980⟧",
        "born on ⟦March 3rd, 1980⟧ in Rome",
        "my birthday is ⟦June 5⟧",
        "(born ⟦12 May 1901⟧)",
        "She was born in ⟦1975⟧",
    ],
    network.ipv4: ["at ⟦106.31.73.20⟧.", "⟦10.0.0.0/8⟧", "http://⟦127.0.0.1⟧:80/", "⟦255.255.255.255⟧, ⟦1.2.3.4⟧"],
    network.ipv6: [
        "⟦6e40:4041:c617:e898:c11:40d2:c669:2eb4⟧",
        "address:⟦fe80::1⟧.",
        "[⟦2001:db8::ff00:42:8329⟧]",
        "⟦::ffff:192.0.2.128⟧",
        "is ⟦2001:db8::⟧ now",
    ],
    network.mac: ["⟦00:1A:2b:3C:4d:5E⟧", "mac=⟦00-1a-2b-3c-4d-5e⟧,", "⟦001a.2b3c.4d5e⟧."],
    network.url_with_credentials: [
        "⟦https://jo:hunter2@example.com/x?y=1⟧ and",
        '"⟦postgres://u:p@ss@db:5432/n⟧"',
        "⟦redis://:secret@cache⟧",
    ],
    places.street_address: [
        "I live at ⟦9097 Kennedy St Baltimore, NY 98045⟧",
        "⟦2773 Kennedy St, Baltimore, MI, 65392⟧",
        "⟦12 Main St⟧",
        "⟦1600 Pennsylvania Avenue NW⟧"[:-4] + "⟧",
        "of ⟦8155 2nd Ave⟧ have been",
        "⟦221B Baker Street⟧ is",
        "⟦5308 Circle Drive  Jacksonville, CA 55194⟧",
        "⟦350 Fifth Ave., Suite 21, New York, New York 10118⟧.",
        "⟦77 N. Martin Luther King Blvd, Apt 4B⟧",
    ],
    places.street_address_lower_case: ["⟦365 main street san mateo texas 94401⟧", "at ⟦12 oak hill rd⟧", "⟦1 1st ave⟧"],
    places.flat_or_suite: ["in ⟦Suite 464⟧,", "⟦Apt. 117⟧", "⟦apt #12B⟧", "⟦apartment 5⟧"],
    places.post_box: ["⟦P.O. Box 123⟧", "to ⟦PO box 9⟧,", "⟦PSC 3294, Box 9168⟧"],
    places.zip_in_context: [
        "My zip code is ⟦14224⟧",
        "ZIP: ⟦14224-1234⟧.",
        "postcode ⟦SW1A 1AA⟧",
        "zipcode=⟦3520⟧",
        "Postal code: ⟦K1A 0B1⟧",
    ],
    places.zip_after_state: ["Beverly Hills, CA ⟦90210⟧", "NY, ⟦10001-1234⟧."],
    places.postcode: ["in ⟦SW1A 1AA⟧.", "⟦M1 1AE⟧", "⟦EC1A 1BB⟧", "⟦K1A 0B1⟧"],
    accounts.username: [
        "username: ⟦dwilliams1⟧",
        "Your username on file is ⟦dwilliams1⟧.",
        "My user name is ⟦aphoenix980⟧, my",
        "username is ⟦APhoenix⟧",
        "login=⟦jo.smith-2⟧",
        "User_ID: '⟦the⟧'",
        "handle is ⟦@jo_b⟧!",
    ],
    accounts.account: [
        "my order id is ⟦2033568069⟧",
        "my account is ⟦AFG5674G⟧.",
        "Account ID: ⟦OVXGGYVD6I⟧",
        "Account ID is ⟦HHHAFNTJHD⟧",
        "Order #⟦12345⟧",
        "order number ⟦0164150987⟧",
        "policy no. ⟦AB-1234-X⟧,",
        "passport ⟦X1234567⟧",
        "acct ⟦99120⟧",
    ],
    accounts.code: ["yes its ⟦0WZTNTNPBR⟧", "⟦AFG5674G⟧.", "⟦L2SUYT4MCQ⟧"],
    accounts.password: [
        "password: ⟦hunter2⟧",
        "pwd='⟦s3cr3t!⟧'",
        "My password is ⟦correct4horse⟧",
        "Passcode = ⟦0000⟧",
    ],
    secrets.KEYS[0]: ["key ⟦AKIAIOSFODNN7EXAMPLE⟧.", "⟦ASIAIOSFODNN7EXAMPLE⟧"],
    secrets.KEYS[1]: [
        "aws_secret_access_key = ⟦wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY⟧",
        'AWS_SECRET_KEY: "⟦wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY⟧"',
    ],
    secrets.KEYS[2]: [f"⟦{kind}_{'aB3' * 12}⟧," for kind in ("ghp", "gho", "ghu", "ghs", "ghr")],
    secrets.KEYS[3]: [f"⟦github_pat_{'a1B_' * 20}⟧ "],
    secrets.KEYS[4]: ["⟦xoxb-123456789012-abcDEF⟧", "token=⟦xoxp-1234567890⟧"],
    secrets.KEYS[5]: ["https://hooks.slack.com/services/⟦T00000000/B00000000/XXXXXXXX⟧"],
    secrets.KEYS[6]: [f"key=⟦AIza{'Sy-_9' * 7}⟧&x"],
    secrets.KEYS[7]: [f"⟦{kind}_{'a1B2' * 6}⟧" for kind in ("sk_live", "rk_live", "pk_test")],
    secrets.KEYS[8]: [f"Bearer ⟦{JWT}⟧ ", f"⟦{JWT.rpartition('.')[0]}.⟧ unsigned"],
    secrets.private_key: [
        f"x ⟦{PEM}⟧ y",
        "⟦-----BEGIN PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----⟧",
        "⟦-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb⟧",
        "⟦-----BEGIN EC PRIVATE KEY-----⟧",
        f"⟦{PEM}⟧, ⟦{PEM}⟧",
    ],
    numbers.digits: ["n ⟦14224⟧, x⟦20335680690000⟧y", "⟦٠١٢٣٤⟧"],
    numbers.spaced_digits: ["is ⟦34 17 52⟧.", "⟦3 4 1 7 5 2⟧", "(⟦123 456 789⟧)"],
}

NEAR_MISSES: dict[Recogniser, list[str]] = {
    contact.email: [
        "a@",
        "@b.com",
        "jo at x.com",
        "a@b",
        "a @b.com",
        "a@.com",
        "@jo_b",
        "a@@b.com",
        "3 @ 5.00",
        "a@b.c",
    ],
    contact.phone: [
        "2010-05-12",
        "10:30 - 11:45",
        "555-12",
        "123-45-6789",
        "12/05/1990",
        "3.14159265358",
        "(791) 582-4288",
        "pages 100-105",
        "1990 – 1995",
        "1,234,567",
    ],
    contact.phone_shape: [
        "(791) 582-428",
        "791-58-4288",
        "7915824288",
        "791-582-42889",
        "2010-05-12",
        "1-800-FLOWERS",
        "12.345.678-9012"[:10],
        "79-1582-4288",
        "791/582/4288",
        "1 791 582",
        "(7915) 824288",
    ],
    contact.phone_international: [
        "+5",
        "+12 points",
        "1+2345678901",
        "+0123456789",
        "+ 44 20 7946",
        "a+4420794609",
        "C++ 11",
        "+3.5 %",
        "+1234",
        "+12345678901234567",
    ],
    contact.phone_in_context: [
        "phone in 2010",
        "call on 2010-05-12",
        "telephone exchange",
        "called 3 times",
        "phone 12345",
        "call it a day",
        "microphone 5551234"[:10],
        "mobile 4G",
        "fax\n5550199",
        "dial 112",
    ],
    money.payment_card: [
        "4111 1111 1111 1112",
        "4111111111111112",
        "411111111111",
        "9111 1111 1111 1111",
        "0000000000000000",
        "411-111-111-111-1111",
        "4111.1111.1111.1111",
        "41111111111111110000000",
        "4111 1111 1111",
        "1111 1111 1111 1117",
    ],
    money.iban: [
        "GB82 WEST 1234 5698 7654 33",
        "DE89370400440532013001",
        "XX82WEST12345698765432",
        "GB82WEST1234569876543",
        "xGB82WEST12345698765432",
        "GB82WEST12345698765432x",
        "DE89 3704",
        "GB82",
        "IT60X0542811101000000123457",
        "ZZ00 AAAA 1111 2222",
    ],
    people.social_security_number: [
        "000-12-3456",
        "666-12-3456",
        "123-00-4567",
        "123-45-0000",
        "123-45-678",
        "123-456-789",
        "12-34-56789",
        "1123-45-6789",
        "123-45-67890",
        "123-45 6789",
        "123-45-6789-1",
        "2010-05-1234",
    ],
    people.date_of_birth: [
        "born to run",
        "born in Rome",
        "date of issue: 03/04/1980",
        "stubborn 1980",
        "birthday cake",
        "DOB:",
        "born 3 times",
        "on March 3, 1980",
        "newborn 12",
        "born on the bayou",
        "birthday 5",
    ],
    network.ipv4: [
        "256.1.1.1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.400",
        "v1.2.3.4",
        "1..2.3",
        "1.2.3.",
        "12.34",
        "1,2,3,4",
        "1.2.3.4a",
        "999.999.999.999",
    ],
    network.ipv6: [
        "std::vector",
        "12:30:45",
        "add::bad",
        "1:2:3:4:5:6:7",
        "1::2::3",
        "::",
        "a::b",
        "12345::1",
        "fe80::1g",
        "1:2:3:4:5:6:7:8:9",
        "Note: see 3:16",
    ],
    network.mac: [
        "00:1A:2b:3C:4d",
        "00:1A:2b:3C:4d:5E:6F",
        "00:1A-2b:3C:4d:5E",
        "00:1G:2b:3C:4d:5E",
        "001a2b3c4d5e",
        "001a.2b3c",
        "12:30:45",
        "0:1A:2b:3C:4d:5E",
        "001a.2b3c.4d5e.6f70"[:9],
        "x00:1A:2b:3C:4d:5E",
    ],
    network.url_with_credentials: [
        "https://example.com",
        "https://example.com:80/a",
        "https://example.com/a:b@c",
        "mailto:a@b.com",
        "https://jo@example.com",
        "//a:b@c",
        "https:// a:b@c",
        "http://a:@c",
        "ftp:a:b@c",
        "time 10:30 @ noon",
    ],
    places.street_address: [
        "12 Angry Men",
        "5 minutes",
        "Main Street",
        "In 1945 the Street",
        "$12 Wall Street",
        "3.5 Main St",
        "12 main st",
        "Wall Street 12",
        "1 Way",
        "40 Years Later The Road"[:14],
        "20 Questions",
    ],
    places.street_address_lower_case: [
        "4 lane road",
        "a 2 way street",
        "10 mile road",
        "5 minute lane",
        "3 people",
        "12 of the road",
        "the main street",
        "8 the avenue",
        "2 streets",
        "12 Main St",
        "6 block street",
    ],
    places.flat_or_suite: [
        "a suite of rooms",
        "Suite Francaise",
        "apt to 5",
        "en suite",
        "apartment",
        "aptly 5",
        "apt 123456",
        "suites 12",
        "hotel suite",
        "suite no 5",
    ],
    places.post_box: [
        "box 12",
        "PO 12",
        "P.O. Box",
        "post 12",
        "po boxes 12",
        "p o b 12",
        "Box PO 12",
        "xpo box 12",
        "PO Box A",
        "po box 12345678",
    ],
    places.zip_in_context: [
        "zip line 14224",
        "zip 142",
        "zip file",
        "unzip 14224",
        "zip it 14224",
        "your zip code?",
        "14224",
        "zip 1422412",
        "postcode lottery",
        "zip code is on file",
    ],
    places.zip_after_state: [
        "XX 90210",
        "CA 9021",
        "CAL 90210",
        "CA90210",
        "MCA 90210",
        "ca 90210",
        "CA 902101",
        "CA 90210-12",
        "California 90210",
        "CA\n\n\n90210",
    ],
    places.postcode: [
        "SW1A1AA1",
        "B2B",
        "sw1a 1aa",
        "SW 1A",
        "1AA SW1",
        "ABC1 1AA",
        "M1 1A",
        "D1A 0B1",
        "K1A0B1",
        "K1A BB0",
    ],
    accounts.username: [
        "username is incorrect",
        "your username and email",
        "username",
        "user name is not valid",
        "Username?",
        "the username is already taken",
        "handle is",
        "I forgot my login",
        "usernames: a",
        "username isn't",
    ],
    accounts.account: [
        "account has been pulled up",
        "in order to 12345",
        "order 66",
        "account for 2020",
        "case closed",
        "order in 1990",
        "reference frame",
        "member since 2015",
        "accountant 12345",
        "Account ID please",
        "ticket 1984",
        "disorder 12345",
    ],
    accounts.code: [
        "B2B",
        "ABCDEFGH",
        "12345678",
        "abc12345",
        "MP3",
        "COVID-19",
        "AFG5674",
        "AFG5674Ga",
        "x-AFG5674G",
        "AFG5674G-1",
    ],
    accounts.password: [
        "the password is incorrect",
        "password",
        "passwords: abc",
        "password reset",
        "password?",
        "pass: 1234",
        "password is",
        "bypassword: abc",
        "password: ab",
        "password is required",
    ],
    secrets.KEYS[0]: [
        "AKIA",
        "AKIAIOSFODNN7EXAMPL",
        "AKIAIOSFODNN7EXAMPLEX",
        "AKIBIOSFODNN7EXAMPLE",
        "akiaIOSFODNN7EXAMPLE",
        "AKIAiosfodnn7example",
        "xAKIAIOSFODNN7EXAMPLE",
        "AKIA IOSFODNN7EXAMPLE",
        "AKIA-IOSFODNN7EXAMPL",
        "ASIA",
    ],
    secrets.KEYS[1]: [
        "aws_secret_access_key",
        "aws_secret_access_key =",
        "secret_key = " + "a" * 40,
        "aws_secret = " + "a" * 40,
        "aws_secret_key = " + "a" * 39,
        "aws_secret_key = " + "a" * 41,
        "aws_secret_key " + "a" * 40,
        "aws_secret_key = " + "-" * 40,
        "aws_key = " + "a" * 40,
        "aws_secret_key = a b",
    ],
    secrets.KEYS[2]: [
        "ghp_short",
        "ghx_" + "a" * 36,
        "ghp-" + "a" * 36,
        "GHP_" + "a" * 36,
        "ghp_" + "a" * 35,
        "xghp_" + "a" * 36,
        "ghp_" + "a-" * 20,
        "gh_" + "a" * 36,
        "high",
        "ghp " + "a" * 36,
    ],
    secrets.KEYS[3]: [
        "github_pat_",
        "github_pat_short",
        "github_pat-" + "a" * 30,
        "github_" + "a" * 30,
        "githubpat_" + "a" * 30,
        "GITHUB_PAT_" + "a" * 30,
        "mygithub_pat_" + "a" * 30,
        "github_pat_ " + "a" * 30,
        "github pat",
        "github_pat_" + "a" * 21,
    ],
    secrets.KEYS[4]: [
        "xox",
        "xoxb",
        "xoxb-",
        "xoxb-short",
        "xoxz-1234567890123",
        "xoxb_1234567890123",
        "axoxb-1234567890123",
        "XOXB-1234567890123",
        "xoxb-123 4567890123",
        "xoxo-hugs",
    ],
    secrets.KEYS[5]: [
        "hooks.slack.com",
        "hooks.slack.com/services/",
        "hooks.slack.com/services/T0",
        "slack.com/services/" + "a" * 30,
        "hooks.slack.org/services/" + "a" * 30,
        "hooks.slack.com/" + "a" * 30,
        "hooks_slack.com/services/" + "a" * 30,
        "hooks.slack.com/services/ " + "a" * 30,
        "hooks.slack.com/service/" + "a" * 30,
        "Hooks.Slack.com/services",
    ],
    secrets.KEYS[6]: [
        "AIza",
        "AIza" + "a" * 34,
        "AIza" + "a" * 36,
        "aiza" + "a" * 35,
        "xAIza" + "a" * 35,
        "AIzb" + "a" * 35,
        "AIza " + "a" * 35,
        "AIza" + "a" * 30 + "!aaaa",
        "AIza" + "a" * 35 + "-",
        "AI za",
    ],
    secrets.KEYS[7]: [
        "sk_live_",
        "sk_live_short",
        "sk_prod_" + "a" * 24,
        "sk-live-" + "a" * 24,
        "xsk_live_" + "a" * 24,
        "sk_live" + "a" * 24,
        "SK_LIVE_" + "a" * 24,
        "sk_live_" + "-" * 24,
        "ask_test_" + "a" * 24,
        "risk_test",
    ],
    secrets.KEYS[8]: [
        "eyJ",
        "eyJ.eyJ.x",
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJIUzI1NiJ9.x.y",
        "eyJhbGciOiJIUzI1NiJ9 eyJzdWIiOiIx.y",
        "xeyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.y",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx",
        "eyJa.eyJzdWIiOiIx.y",
        "EYJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.y",
        "they.eyJ.x",
    ],
    secrets.private_key: [
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "BEGIN PRIVATE KEY",
        "----BEGIN PRIVATE KEY----",
        "-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY",
        "-----begin private key-----",
        "PRIVATE KEY",
        "-----BEGIN  PRIVATE KEY-----",
        "-----BEGIN RSA PUBLIC KEY-----",
    ],
    numbers.digits: ["1234", "12 34", "1,234", "12-34", "1.2345", "1a2b3c4d5e", "2020", "½½½½½", "Ⅷ", "²²²²²"],
    numbers.spaced_digits: [
        "12 34",
        "1 2 3 4",
        "1990 1991 1992",
        "12, 34, 56",
        "1.5 2.5 3.5",
        "34  17  52",
        "a1 22 333"[:5],
        "10:20 30 40"[:8],
        "1-2 3 4",
        "12 34 5.5",
    ],
}


def unmarked(marked: str) -> tuple[str, list[str]]:
    """A text without its marks, and what they enclosed."""
    return marked.replace("⟦", "").replace("⟧", ""), [part.split("⟧")[0] for part in marked.split("⟦")[1:]]


def cases(table: dict[Recogniser, list[str]]) -> list[object]:
    return [
        pytest.param(recogniser, text, id=f"{RECOGNISERS.index(recogniser)}-{text[:30]}")
        for recogniser, texts in table.items()
        for text in texts
    ]


@pytest.mark.parametrize(("recogniser", "marked"), cases(POSITIVES))
def test_positives_are_found_exactly(recogniser: Recogniser, marked: str) -> None:
    text, expected = unmarked(marked)
    assert [text[start:end] for start, end, _ in recogniser(text)] == expected


@pytest.mark.parametrize(("recogniser", "text"), cases(NEAR_MISSES))
def test_near_misses_are_left_alone(recogniser: Recogniser, text: str) -> None:
    assert list(recogniser(text)) == []


def test_every_recogniser_is_tested_and_listed() -> None:
    assert set(POSITIVES) == set(NEAR_MISSES) == set(RECOGNISERS)
    assert all(len(texts) >= 10 for texts in NEAR_MISSES.values())


def test_the_labels_are_those_that_are_found() -> None:
    found = [recogniser(unmarked(text)[0]) for recogniser, texts in POSITIVES.items() for text in texts]
    assert {label for matches in found for _, _, label in matches} == LABELS


@given(st.from_regex(r"[0-9]{1,25}", fullmatch=True))
def test_luhn_agrees_with_python_stdnum(digits: str) -> None:
    assert money.luhn(digits) == standard_luhn.is_valid(digits)


PIECES = [unmarked(each)[0] for texts in POSITIVES.values() for each in texts]


@given(st.lists(st.one_of(st.text(st.characters(), max_size=5), st.sampled_from(PIECES)), max_size=6))
def test_offsets_are_in_range_for_any_text(pieces: list[str]) -> None:
    text = " ".join(pieces)
    for recogniser in RECOGNISERS:
        for start, end, label in recogniser(text):
            assert 0 <= start < end <= len(text)
            assert label in LABELS


SEEDS = [
    "a", "1", "A", "@", "a@", "a.", "a'", "1 ", "1-", "12 ", "1234 ", "+1", "(1", "1:", "::", "f:", ".", "://", "a://b:",
    "a://b:c@", "eyJ", "eyJa.", "eyJaaaaaaaa.eyJ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "AA11 A ", "AA11",
    "account ", "account id is ", "username is ", "password is a", "born on ", "zip ", "1 A A A A ", "1 Aa Aa ",
    "1 a b ", "1 Main St, Aa Aa Aa ", "xox", "gh", "AKIA", "A1", "٠", " ", "\n", "call 1 ", "1.1.1.", "00:",
    "4111 1111 1111 1111 ", "+1 2 3 4 5 6 7 8 9 ", "555-123-4567 ", "é", "AL 1", "\ud800", "aA1_-",
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_no_text_makes_a_recogniser_hang(seed: str) -> None:
    text = (seed * 50_000)[:50_000]
    for recogniser in RECOGNISERS:
        start = time.perf_counter()
        for _ in recogniser(text):
            pass
        assert time.perf_counter() - start < 2


def test_adding_one_is_a_row() -> None:
    from atdp_cli.text.identifiers import pattern

    badge = pattern("BADGE", r"(?<!\w) B-\d{3} (?!\w)")
    assert list(badge("my badge is B-123.")) == [(12, 17, "BADGE")]
