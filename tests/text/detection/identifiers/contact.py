"""E-mail addresses and telephone numbers: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, contact

POSITIVES: dict[Recogniser, list[str]] = {
    contact.email: [
        "write to ⟦josephb7@email.com⟧, or", "<⟦Jo.O'Brien+x_y@mail.sub-domain.co.uk⟧>", "mailto:⟦a@b.io⟧.",
        "'⟦a@b.io⟧'", "⟦josé@exämple.com⟧ ⟦b%c@d.museum⟧", "email ⟦phoenix802@ email.com⟧",
        "⟦info@bücher.photography⟧; ⟦a@xn--e1afmkfd.xn--p1ai⟧", "reach ⟦jo+lists@sub.example.org⟧ today",
        "⟦用户@例子.中国⟧",
    ],
    contact.email_spelled_out: [
        "⟦jdoe at gmail.com⟧ is mine; ⟦john dot doe at web dot de⟧", "write to ⟦jo [at] example [dot] com⟧.",
        "⟦mary.smith(at)uni-bonn(dot)de⟧ or ⟦mary.smith (at) uni-bonn.de⟧",
        "mail me: ⟦jsmith42 at gmail dot com⟧, thanks", "⟦anna_k at mail dot example dot org⟧",
        "mail ⟦anna dot lopez at gmail dot com⟧", "⟦jorge dot ramirez 88 at gmail dot com⟧",
        "⟦jo underscore b at example dot co dot uk⟧", "⟦kofi underscore m at quickpost dot example⟧, the work one",
    ],
    contact.phone: [
        "ring ⟦212-456-7890⟧ or ⟦+44 20 7946 0958⟧ now", "⟦(415) 555-2671⟧", "⟦+1 415-555-2671 x22⟧",
        "⟦+49 30 901820⟧", "fax ⟦(212) 456-7890⟧",
    ],
    contact.phone_shape: [
        "USR:⟦(791) 582-4288⟧", "⟦791-582-4288⟧ ⟦791.582.4288⟧ ⟦791 582 4288⟧", "⟦+1 (791) 582-4288⟧",
        "⟦001-518-640-0854⟧", "⟦345-899-3560x4587⟧ ⟦345-899-3560 ext. 12⟧.", "⟦(791) 582\u20114288⟧",
    ],
    contact.phone_international: [
        "at ⟦+41 (0)38 549 02 90⟧.", "⟦+919876543210⟧", "tel:⟦+919876543210⟧", "⟦+7 (999) 123-45-67⟧",
        "⟦0049 30 901820⟧",
    ],
    contact.phone_in_context: [
        "Call me at ⟦781 1704⟧!", "phone: ⟦0487 98 11 92⟧", "Her fax number is ⟦(37) 788-063⟧", "Tel. ⟦72 128 827⟧",
        "telephone ⟦555-0199⟧", "get me on ⟦9123 4567⟧", "his number: ⟦555-0142⟧", "Phone:\n⟦780 6326⟧\n",
        "no more messages to ⟦0489 25 37 29⟧, please",
    ],
    contact.phone_before_its_kind: [
        "⟦781 1704⟧ office", "⟦(37) 788-063⟧-Office", "⟦20 7946 0018⟧ (fax)", "on ⟦+44 20 7946 0018⟧, mobile",
        "⟦555-0142⟧ (mobile)",
    ],
    contact.phone_trunk: [
        "ask ⟦(08) 8765 4321⟧ or ⟦0207 946 0018⟧.", "⟦07700 900123⟧, ⟦089/1234567⟧", "at ⟦06 12 34 56 78⟧",
        "⟦03-1234-5678⟧", "ring ⟦0171 1234567⟧ or ⟦0412 345 678⟧",
    ],
    contact.phone_pairs: [
        "at ⟦71-33-52-22⟧.", "⟦06.12.34.56.78⟧ or ⟦12-34-56-78⟧", "ring ⟦61.23.45.67⟧",
    ],
    contact.phone_area: [
        "ring ⟦8 (916) 123-45-67⟧ now", "ligue ⟦(11) 91234-5678⟧ hoje", "office ⟦(341) 4231-2345⟧.",
        "in Pune ⟦(20) 2567-1234⟧",
    ],
    contact.phone_blocks: [
        "call ⟦138 1234 5678⟧ or ⟦55 5123 4567⟧.", "⟦11 91234-5678⟧", "⟦20 7946 0018⟧; ⟦138-1234-5678⟧",
    ],
    contact.email_spaced: [
        "⟦anna . lopez @ gmail . com⟧", "⟦jo [@] example.com⟧.", "at ⟦jo.b (@) mail.example.org⟧",
        "⟦jsmith @ yahoo.com⟧ please",
    ],
    contact.phone_mobile: [
        "on ⟦98765 43210⟧.", "⟦347 1234567⟧ or ⟦601-234-567⟧", "ring ⟦8-916-123-45-67⟧ now", "⟦089 / 12 34 56 78⟧",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    contact.email: [
        "a@", "@b.com", "jo at x.com", "a@b", "a @b.com", "a@.com", "@jo_b", "a@@b.com", "3 @ 5.00", "a@b.c",
        "jo(a)x.com", "jo@localhost", "jo@10.0.0.1", "@import url.css", "meet @ the.office", "jo@example,com",
        "jo.smith#example.com", "git@host:repo", "50% @ best.price", "x @example.com", "jo@example .com", '"@".join',
    ],
    contact.email_spelled_out: [
        "jo at home", "look at example dot com", "meet us at the dot com party", "the dot com bubble",
        "jo@example.com", "shop at amazon.com", "jo at example com", "[at] example [dot] com", "jo [at] example",
        "she is at example dot com", "find us at example dot org", "polka at dot com", "jo at example dot company",
        "jo (at) home (dot) xyzzy", "order at example dot com", "jo at example dot", "at at at dot dot",
        "click at example dot net", "lunch (at noon) in example.com", "jo at dot com", "3 at 5 dot 20",
    ],
    contact.phone: [
        "2010-05-12", "10:30 - 11:45", "555-12", "123-45-6789", "12/05/1990", "3.14159265358", "(791) 582-4288",
        "pages 100-105", "1990 – 1995", "1,234,567", "(555) 12", "v4.15.2671.3", "0000000000", "415-555",
        "99999-99999", "+1 2 3", "123.456.7890.12", "ISBN 978-3-16-148410-0", "20:15-22:30", "$415-555",
        "1/2/3/4/5/6",
    ],
    contact.phone_shape: [
        "(791) 582-428", "791-58-4288", "7915824288", "791-582-42889", "2010-05-12", "1-800-FLOWERS", "12.345.678",
        "79-1582-4288", "791/582/4288", "1 791 582", "(7915) 824288", "791-582-42-88", "791--582-4288",
        "791_582_4288", "(791) 58-24288", "a791-582-4288", "791-582/4288", "791 5824 288", "[791] 582", "123-45-6789",
        "12-791-582-4288",
    ],
    contact.phone_international: [
        "+5", "+12 points", "1+2345678901", "+0123456789", "+ 44 20 7946", "a+4420794609", "C++ 11", "+3.5 %",
        "+1234", "+12345678901234567", "GMT+0530", "E+123456789", "+1,234,567", "+44", "00 1", "+ 1 415 555 2671",
        "+++1", "x=+1.5e10", "100+200+300", "1990+12345678", "UTC+01:00",
    ],
    contact.phone_in_context: [
        "phone in 2010", "call on 2010-05-12", "telephone exchange", "called 3 times", "phone 12345", "call it a day",
        "microphone", "mobile 4G", "fax\n5550199", "dial 112", "call 911", "phone a friend", "callback 5551234567x",
        "my phone has 128 GB", "iPhone 14 2022", "called on 12.05.2010", "headphone 5551234", "ring road 25",
        "recall 78117041", "saxophone: 7811704", "dial M", "mobile homes: 12, 14 and 16",
    ],
    contact.phone_before_its_kind: [
        "the office", "2010-05-12 office", "12 000 000 phone calls", "12345 mobile", "in 2010 the office",
        "1,234,567 fax", "781 1704 officers", "v781 1704 office", "3 phones", "781 1704 and office", "4,7811704 cell",
        "781 1704 phoney", "781 1704. Office", "781 1704\n\n\nfax", "78117 to the office", "9 fax machines",
        "100 mobile phones", "2:30 office", "12.05.2010 fax", "a1/781 1704 fax", "five office",
    ],
    contact.phone_trunk: [
        "0123 4567", "01-02-2003", "0 1234 5678", "1207 946 0018", "0.123 456 789", "00 00 00", "a0207 946 0018",
        "0207 946 0018a", "(08) 8765", "012345 123456", "0207 946 001 8123 4567", "0123 456 78,5", "0.5 - 0.75",
        "007 42", "05:30 12:45", "01/02/2003", "0x1234 5678", "1990-0123-45", "0123456789", "00001 2", "07-08",
        "-0207 946 0018",
    ],
    contact.phone_pairs: [
        "12-34-56", "12-34-56.78", "1-23-45-67", "12-34-56-78-90-12", "112-34-56-78", "12-34-56-789", "12/34/56/78",
        "12:34:56:78", "2010-05-12-10", "12-34-5a-78", "12.34.56", "12-34-56-7", "12–34–56–78", "12.34-56.78",
        "v12.34.56.78", "12.34.56.78.90.11", "1.2.3.4", "10.20.30.40/24", "12 34 56 78", "a-12-34-56-78",
        "-12-34-56-78",
    ],
    contact.phone_area: [
        "(11) 9123", "(1990) 1234-5678", "f(11) 91234-5678", "(11) 91234-5678-9", "(11) 91234", "(11)",
        "(11) 1234-5678 9", "11) 91234-5678", "(1) 91234-5678", "(12345) 1234-5678", "(11) 1990-2004",
        "(11) 91234,5678", "(11) 91-5678", "(a1) 91234-5678", "(11) 91234-5678/9", "x)(11) 91234-5678",
        "(11) 12 34 56 78", "(11)  91234-5678", "(11) 912345-5678", "(11 91234-5678", "(11) 91234-5678a",
    ],
    contact.phone_blocks: [
        "138 1234", "12 2010 2011", "138-1234-567", "138 1234 56789", "1 1234 5678", "1381 1234 5678",
        "138.1234.5678", "138 123 5678", "138 1234  5678", "v138 1234 5678", "138 1234 5678 9012", "-138 1234 5678",
        "138/1234/5678", "138 1234 5678,5", "4111 138 1234 5678", "138 1990 5678", "138\n1234 5678",
        "138 123456 5678", "10:38 1234 5678", "138 1234 5678x", "12 34 56 78",
    ],
    contact.email_spaced: [
        "jo@example.com", "meet @ the.office", "50% @ best.price", "3 @ 5.00", "jo @ home", "x @example.com",
        "@ gmail", "[@] example.com",
        "jo [at] example.com", "jo (@) home", "dinner @ 8.30", "jo@gmail.com", "jo @ outlook", "lunch @ yahoo hq",
        "a @ b . c", "jo@ example.com",
        "jo [@] example", "jo{@", "<@U0123>", "jo @ example . com", "(@jo) x.com", "jo @ gmail . x",
    ],
    contact.phone_mobile: [
        "12345 67890", "98765 4321", "98765 432101", "347 12345", "347 12345678", "101-234-567", "601-234-5678",
        "601-234-56",
        "1601-234-567", "8-116-123-45-67", "8-916-123-45", "08 / 15", "0 / 12", "98765-43210-1", "v98765 43210",
        "98765 43210 11", "98765.43210",
        "$98765 43210", "601-234-567/8", "447 1234567", "98765 43210x", "01/02/2003",
    ],
}  # fmt: skip
