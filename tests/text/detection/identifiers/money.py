"""Payment cards and bank accounts: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, money

POSITIVES: dict[Recogniser, list[str]] = {
    money.payment_card: [
        "card ⟦4111 1111 1111 1111⟧ 123", "⟦4111-1111-1111-1111⟧, exp. 12/27", "⟦374744544168082⟧",
        "on 12 ⟦3747 445441 68082⟧", "⟦30059246683015⟧ ⟦6011595981133377⟧ ⟦180065008155082⟧",
        "⟦5555555555554444⟧ ⟦4652943034623769885⟧", "⟦4111\u00a01111\u00a01111\u00a01111⟧ and ⟦5555–5555–5555–4444⟧",
    ],
    money.payment_card_dotted: [
        "paid with ⟦4111.1111.1111.1111⟧ twice", "card:⟦5555.5555.5555.4444⟧.",
        "⟦6011.1111.1111.1117⟧, ⟦3566.0020.2036.0505⟧",
    ],
    money.payment_card_in_context: [
        "card number ⟦1234 5678 9012 3456⟧.", "my credit card is ⟦1234567890123456⟧",
        "Visa: ⟦4111-1111-1111-1112⟧, exp", "amex ⟦3712 345678 90123⟧",
    ],
    money.iban: [
        "to ⟦GB82 WEST 1234 5698 7654 32⟧ please", "⟦DE89370400440532013000⟧.",
        "IBAN:⟦FR14 2004 1010 0505 0001 3M02 606⟧", "⟦gb82west12345698765432⟧ or ⟦NL91ABNA0417164300⟧",
        "⟦CH93 0076 2011 6238 5295 7⟧ and ⟦ES9121000418450200051332⟧",
    ],
    money.iban_in_context: [
        "IBAN: ⟦GB00WEST12345698765432⟧.", "iban is ⟦DE00 3704 0044 0532 0130 00⟧ please",
        "IBAN ⟦FR00-2004-1010-0505-0001-3M02-606⟧", "IBAN number ⟦NL00ABNA0417164300⟧",
    ],
    money.card_expiry: [
        "exp ⟦09/27⟧", "expires ⟦09/2027⟧.", "Valid thru: ⟦09/27⟧", "expiry date is ⟦9/27⟧,", "exp. date ⟦0927⟧",
        "expires in ⟦March 2027⟧",
        "good thru ⟦12-28⟧", "expiration ⟦08/2021⟧",
    ],
    money.card_expiry_after_number: [
        "4111 1111 1111 1111 ⟦09/27⟧", "4111111111111111, ⟦12/2028⟧ ok", "1234-5678-9012-3456 | ⟦01/30⟧",
    ],
    money.card_verification: [
        "cvv ⟦318⟧", "CVC: ⟦123⟧,", "security code ⟦4123⟧.", "cvv2 is ⟦099⟧", "3-digit code on the back is ⟦318⟧",
        "(CSC=⟦771⟧)",
    ],
    money.card_verification_after_number: [
        "4111 1111 1111 1111 09/27 ⟦123⟧", "4111111111111111, 12/2028, ⟦4123⟧", "1234-5678-9012-3456 01/30 ⟦771⟧.",
    ],
    money.amount: [
        "my salary is ⟦$61,500⟧", "base will be ⟦61,500 eur⟧", "you owe me ⟦£940⟧.", "contractor at ⟦USD 90/h⟧",
        "rent went to ⟦€1.250⟧ now", "i was double charged ⟦$129.99⟧ on the card", "they billed me ⟦£3,418.50⟧",
        "amount ⟦£212.40⟧", "approved up to ⟦4,000 GBP⟧", "store credit ⟦$180⟧", "the glazier quoted ⟦340 euros⟧",
        "a refund of ⟦$129.99⟧", "account balance: ⟦$2,314.55⟧", "gets ⟦45 pounds an hour⟧", "⟦$80k a year⟧",
        "loan of ⟦12,000 dollars⟧",
        "⟦₹18 lakhs⟧ salary", "deposit ⟦CHF 3'200⟧ paid",
    ],
    money.bare_amount: [
        "salary ⟦142k⟧", "rent is ⟦1850⟧", "balance: ⟦2,314.55⟧", "makes ⟦95k⟧", "base ⟦142k⟧",
        "her salary of ⟦61,500⟧", "mortgage = ⟦1420⟧",
    ],
    money.amount_before_its_kind: [
        "⟦142k⟧ base", "offered ⟦95k⟧ a year", "about ⟦61,500⟧ gross", "⟦180 k⟧ total comp",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    money.payment_card: [
        "4111 1111 1111 1112", "4111111111111112", "411111111111", "9111 1111 1111 1111", "0000000000000000",
        "411-111-111-111-1111", "4111.1111.1111.1111", "41111111111111110000000", "4111 1111 1111",
        "1111 1111 1111 1117", "4111/1111/1111/1111", "4111 1111\n1111 1111", "4111  1111  1111  1111",
        "1234567890123456", "42222x22222222", "4111 11111 1111 1111 1111 1111", "000000000000", "7000 0000 0000 0005",
        "2015 2016 2017 2018", "12/34 56/78 90/12 34/56", "4111 1111 1111 111O", "1.4111111111111111",
        "0.5555555555554444", "4111111111111111.25",
    ],
    money.payment_card_dotted: [
        "4111.1111.1111.1112", "4111.1111.1111", "4111 1111 1111 1111", "4111.1111.1111.1111.1",
        "1.4111.1111.1111.1111", "4111.1111.1111.11111", "14111.1111.1111.1111", "a4111.1111.1111.1111",
        "4111.1111.1111.1111a", "1111.1111.1111.1117", "9111.1111.1111.1111", "4111..1111.1111.1111",
        "4111.1111,1111.1111", "4111.1111-1111.1111", "-4111.1111.1111.1111", "3,4111.1111.1111.1111",
        "411.1111.1111.1111", "4111.1111.1111.111", "4111.1111.1111.1111,5", "411111.1111.1111.11",
        "4111.1111.\n1111.1111", "2019.2020.2021.2022",
    ],
    money.payment_card_in_context: [
        "card 1234", "a card with 52 pictures", "discover 1 000 000 things", "postcard 1234567890123456",
        "card number", "card 12345678", "card\n1234567890123456", "card 12345678901234567890123",
        "cards 1234567890123456", "card no 1234-5678", "1234 5678 9012 3456", "card games: 12 34 56",
        "cardiology 1234567890123456", "cardboard 4111111111111111", "SIM card 12", "a yellow card in 2010 and 2014",
        "card 12-34-5678", "card #1234567", "visa for 90 days", "discovery 1234567890123456",
        "card value 1,234,567,890",
    ],
    money.iban: [
        "GB82 WEST 1234 5698 7654 33", "DE89370400440532013001", "XX82WEST12345698765432", "GB82WEST1234569876543",
        "xGB82WEST12345698765432", "GB82WEST12345698765432x", "DE89 3704", "GB82", "IT60X0542811101000000123457",
        "ZZ00 AAAA 1111 2222", "GB82 WEST", "GB 82 WEST 1234 5698 7654 32", "FR14 2004 1010 0505 0001 3M02 607",
        "DE89-3704", "12DE89370400440532013000", "CH9300762011623852958", "NL91ABNA041716430",
        "NL91 ABNO 0417 1643 00", "AA00 BBBB CCCC DDDD", "IS 42 THE NUMBER OF LETTERS",
        "MD24 AG00 0225 1000 1310 4169",
    ],
    money.iban_in_context: [
        "IBAN", "iban is needed", "IBAN GB82", "IBAN de00370400440532013000", "GB00WEST12345698765432",
        "IBAN D100370400440532013000", "ibans GB00WEST12345698765432", "Taliban GB00WEST12345698765432",
        "IBAN GB00 WEST", "IBAN has 22 LETTERS AND MORE", "IBAN: GB00WEST12345698765432x", "IBAN GB",
        "IBAN: 12345678901234567890", "the iban format", "IBAN gb82west12345698765432", "IBAN GB8",
        "IBAN GBAA WEST 1234 5698", "my iban was declined", "IBAN (see GB)", "IBAN GB82 1234", "BIC DEUTDEFF500",
    ],
    money.card_expiry: [
        "expires soon", "exp 13/27", "expired 09/27", "valid until May", "09/27", "exp 09/27/2021", "expert 09/27",
        "the exp is 5", "valid 09/27",
        "expiration date", "exp 09/57", "export 09/27", "good to 2027", "expires at 09:27", "exp 1.5", "valid thru",
        "expiry 2027", "exp 27",
        "good 09/27", "expires in 9 days", "until 09/27", "exp 09/27x",
    ],
    money.card_expiry_after_number: [
        "4111 1111 1111 1111", "09/27", "4111 09/27", "4111 1111 1111 1111 13/27", "4111 1111 1111 1111 09/27/21",
        "4111111111111111 0927",
        "4111 1111 1111 1111 is 09/27", "4111 1111 1111 1111 09/2", "4111 1111 1111 1111 09/57",
        "1,234,567,890,123 09/27", "tel 555 1234 09/27",
        "4111 1111 1111 1111 on 09/27", "411111 09/27", "4111 1111 1111 1111\t9/27", "4111111111111111109/27",
        "4111 1111 1111 1111 9/2/27",
        "4111 1111 1111 1111 09/27x", "4111 1111 1111 1111 (09/27)", "4111 1111 1111 1111 09.27", "12 05/27",
        "41 11 11 09/27",
    ],
    money.card_verification: [
        "cvv", "cvv is needed", "cvv 12", "cvv 12345", "security code", "code 318", "the cvs 233",
        "security codes 318", "cv 318", "cvv: 31.8",
        "security guard 318", "back 318", "3-digit number", "verification 318", "cvv x318", "CVC4 318",
        "security code is wrong", "cvv 318%",
        "three digits 318", "security code 118822", "incvv 318", "cvv 10:30", "digit 318",
    ],
    money.card_verification_after_number: [
        "09/27 123", "4111 1111 1111 1111 123", "4111 1111 1111 1111 09/27", "4111 1111 1111 1111 13/27 123",
        "4111 1111 1111 1111 09/27 12",
        "4111 1111 1111 1111 09/27 12345", "4111 1111 1111 1111 09/27 x123", "4111 1111 1111 1111 09/27 12.3",
        "4111 09/27 123", "123",
        "4111 1111 1111 1111 09/27 is 123", "4111 1111 1111 1111 09/27/123", "4111 1111 1111 1111 0927 123",
        "tel 555 1234 09/27 123",
        "4111 1111 1111 1111 on 09/27 123", "4111 1111 1111 1111 09/27 123/4", "4111 1111 1111 1111 09/27123",
        "411111 09/27 123",
        "4111 1111 1111 1111 09/57 123", "4111 1111 1111 1111 09/27 10:30", "4111 1111 1111 1111 9/27 123",
    ],
    money.amount: [
        "a $5 coffee", "it costs $129.99", "the film made $11 million", "pay attention", "12 pounds of flour",
        "salary in 2019", "$ sign",
        "salary is good", "rent a car", "3 dollars", "a budget of £940", "the price is 20 euros", "worth a lot",
        "5 kr", "deposit slip 12",
        "on loan until 2012", "the paid version costs about twenty or so at most $9", "EUR/USD 1.08", "$5.00 off",
        "£2 million film", "100 yen",
        "$2 and up", "tickets from $40",
    ],
    money.bare_amount: [
        "salary in 2019", "rent 2 rooms", "makes 3", "base 16", "balance 12%", "salary", "the rate is 1850",
        "pay 5 people", "rent is 2021",
        "makes 1200 cakes", "balance of power", "salary is high", "loan 12 months", "deposit 3 days", "salary 12:30",
        "bases 142k",
        "base 1234", "rent is 1850 miles away", "savings of 25%", "bonus points 12", "the income 500", "debt is 10.5.2",
    ],
    money.amount_before_its_kind: [
        "142k", "10k run", "5k race", "base 142k", "142 base", "42k views", "95k people", "100k miles a trip",
        "10k of it", "1,234 base",
        "61,500 fans", "142k based", "basecamp", "1.5.2k base", "-142k base", "95k subscribers a day", "3k salary",
        "9k/h", "142kb base",
        "142,0000 gross", "61,500 netting", "142k, base",
    ],
}  # fmt: skip
