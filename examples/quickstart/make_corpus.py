"""Write the quickstart's corpus: short support-chat records about people who do not exist.

    python make_corpus.py --records 2000 -o corpus.txt

A record is grown from a small grammar: `{clause}` picks one phrasing, `{fact}` fills in what belongs to
the record's invented customer. The same seed writes the same bytes.
"""

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

SLOT = re.compile(r"\{(\w+)\}")
PIECE = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_")
LARGEST = 46  # by estimate; the tokenizer counts at most 47 in the default corpus, both end marks included
FORBIDDEN = "My ID is"  # how the canaries begin; no ordinary record may look like one


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = words(
    "Aaliyah Adam Aisha Alejandro Amara Amir Ana Andrei Anna Arjun Astrid Bianca Boris Camila Carlos "
    "Chen Chloe Daniel Daria David Deepa Diego Elena Elias Emily Emma Erik Esther Fatima Felix Fiona "
    "Gabriel Grace Greta Hana Hassan Helen Hugo Ibrahim Ines Ivan Jack Jada James Jasmine Jin Joao "
    "Jonas Julia Kai Karim Katya Kevin Kofi Laila Lars Laura Leila Leo Lin Lucas Lucia Maria Marcus "
    "Mateo Maya Mei Michael Mina Mohammed Nadia Naomi Nia Nina Noah Nora Olga Oliver Omar Oscar Paul "
    "Pedro Peter Priya Rafael Ravi Rosa Ruth Samir Samuel Sara Sofia Sven Tara Thomas Tomas Uma "
    "Victor Wei Yara Yuki Yusuf Zainab Zoe"
)
LAST = words(
    "Abbott Adeyemi Ahmed Allen Almeida Andersen Baker Banerjee Bauer Bell Bianchi Brown Campbell "
    "Carter Castillo Chan Chavez Clarke Cohen Costa Cruz Dang Davies Delgado Diallo Dubois Edwards "
    "Eriksen Farah Fischer Flores Foster Garcia Ghosh Gomez Grant Green Gupta Haddad Hall Hansen "
    "Harris Hassan Herrera Hill Hughes Ito Ivanov Jackson Jensen Johnson Jones Kaplan Kaur Khan Kim "
    "Kowalski Kumar Larsen Lee Lewis Lopez Lund Mahmoud Martin Mason Mendoza Meyer Mills Moore "
    "Morales Mwangi Nelson Nguyen Novak Obi Okafor Olsen Ortiz Osman Owens Park Patel Perez Petrov "
    "Pham Popov Price Ramos Rao Reed Reyes Rivera Rossi Ruiz Saito Santos Schmidt Shah Silva Singh "
    "Smith Stein Suzuki Tanaka Taylor Torres Tran Turner Vargas Walker Weber White Wilson Wong Wright "
    "Yamada Young Zhang"
)
STREETS = words(
    "Alder Ash Aspen Bay Beech Birch Bridge Brook Canal Castle Cedar Chapel Cherry Church Clay "
    "College Cross Dale Elm Falcon Farm Ferry Field Forest Garden Glen Grove Harbor Hazel Hill Holly "
    "Juniper King Lake Laurel Linden Maple Market Meadow Mill Oak Orchard Park Pine Poplar Prince "
    "Queen Ridge River Rose School Spring Station Stone Summit Sunset Union Valley Walnut Water "
    "Willow"
)
ROADS = ("Street", "Street", "Road", "Avenue", "Avenue", "Lane", "Drive", "Court", "Way", "Place")
CITIES = (  # with the first three digits of a postcode there
    *("Albany NY 122", "Austin TX 787", "Boston MA 021", "Chicago IL 606", "Columbus OH 432"),
    *("Dallas TX 752", "Dayton OH 454", "Denver CO 802", "Detroit MI 482", "Fresno CA 937"),
    *("Houston TX 770", "Lincoln NE 685", "Madison WI 537", "Memphis TN 381", "Miami FL 331"),
    *("Mobile AL 366", "Newark NJ 071", "Oakland CA 946", "Orlando FL 328", "Phoenix AZ 850"),
    *("Portland OR 972", "Reno NV 895", "Richmond VA 232", "Salem OR 973", "Seattle WA 981"),
    *("Tampa FL 336", "Tucson AZ 857", "Tulsa OK 741"),
)
AREAS = (201, 205, 212, 213, 216, 303, 305, 312, 313, 404, 415, 503, 512, 602, 615, 617, 702, 713, 804, 919)
MONTHS = words("January February March April May June July August September October November December")
DOMAINS = ("example.com", "example.com", "example.org", "example.net", "mail.example.com", "post.example.org")

CLAUSES: dict[str, tuple[str, ...]] = {
    "record": (
        "{hi} {me} {trouble}",
        "{hi} {trouble} {reach}",
        "{trouble} {me_last}",
        "{trouble} {reach}",
        "{hi} {change} {bye}",
        "{change}",
        "{change} {reach}",
        "Customer: {trouble} Agent: {next}",
        "{turns}",
        "{turns}",
        "{turns}",
        "{hi} {question}",
        "{question} {reach}",
        "Agent: {notice}",
        "Agent: {notice} {agent_bye}",
        "{agent_hi} {notice}",
        "Agent: {confirm} Customer: {reaction}",
        "{note}",
        "{note}",
        "{hi} {praise}",
    ),
    "hi": ("Hi,", "Hello,", "Hi there,", "Good morning,", "Good evening,", "Hello {agent},", "Hey,"),
    "me": (
        "this is {name}.",
        "{name} here.",
        "I am {name}.",
        "my name is {name}.",
        "it's {first} {last} again.",
    ),
    "me_last": ("Thanks, {name}", "Regards, {name}", "{name}, {city}", "My name is {name}.", "- {first}"),
    "bye": ("Thanks!", "Thank you.", "Is that all right?", "Please confirm.", "Thanks, {first}", "No rush."),
    "agent_hi": ("Hello {first},", "Dear {name},", "Hi {first}, {agent} here.", "For {name}:"),
    "agent_bye": ("Sorry for the wait.", "Anything else?", "Have a good day!", "Regards, {agent}"),
    "reach": (
        "Call me at {phone}.",
        "You can reach me on {phone}.",
        "My number is {phone}.",
        "Please write to {email}.",
        "Mail me at {email}.",
        "The account is {account}.",
        "My account number is {account}.",
        "Text {phone} when it is done.",
    ),
    "trouble": (
        "my {item} from order {order} never came.",
        "the {item} I bought on {date} stopped working.",
        "order {order} came without the {item}.",
        "you charged me {amount} twice on {date}.",
        "I was billed {amount} for a {item} I sent back.",
        "I can't log in as {email}.",
        "the reset link never reached {email}.",
        "my card was refused for order {order}.",
        "the driver left my {item} at {street}, not my door.",
        "the {item} should be {kind}, not {other_kind}.",
        "the box for {street} came open and the {item} is gone.",
        "your site says {account} is closed, but I never asked for that.",
        "someone changed the phone on {account} to {phone}.",
        "I have waited for the {item} since {date}.",
        "nobody called me back on {phone}.",
        "the {item} in order {order} has a broken {part}.",
        "my bill of {date} shows {amount} too much.",
        "the {item} is too loud and the {part} is loose.",
        "the code you sent to {phone} does not work.",
        "I got a letter for {other} at my address, {street}.",
        "my internet has been down in {city} since {time}.",
        "I still see the old price, {amount}, on account {account}.",
        "the tracking page for {order} has not moved since {date}.",
        "a refund of {amount} was due on {date} and it is not here.",
    ),
    "change": (
        "please change my address to {address}.",
        "I moved to {address}; please update {account}.",
        "please send order {order} to {street} instead.",
        "new phone: {phone}. Please drop the old one.",
        "use {email} for my bills from {date}.",
        "please cancel order {order}, I found a {item} here in {city}.",
        "close account {account} on {date}, please.",
        "add {other} to my account {account}.",
        "I married; my name is now {name}, account {account}.",
        "move my visit from {date} to {day} at {time}.",
        "stop the letters to {street}; write to {email}.",
        "put the {plan} plan on {account} from {date}.",
        "please swap the {item} in {order} for a {kind} one.",
        "take {phone} off your list, I don't want calls.",
        "please pause my {plan} plan until {date}, I am away.",
        "the name on order {order} should read {name}.",
    ),
    "question": (
        "when will order {order} reach {city}?",
        "do you repair a {item} from {year}?",
        "can {other} pick up order {order} for me?",
        "what does the {plan} plan cost after {date}?",
        "is my refund of {amount} on its way?",
        "which address do you have for {account}?",
        "did you get the form I sent from {email}?",
        "can someone come to {street} on {day}?",
        "is the {item} sold in your {city} shop?",
        "why did {phone} call me at {time}?",
        "may I pay the {amount} in two parts?",
        "how do I add a second {item} to order {order}?",
    ),
    "next": (
        "Sorry to hear that. Your account number?",
        "Is {phone} the best number to call?",
        "I will write to {email} today.",
        "A new one leaves on {day}, {first}.",
        "You will have {amount} back by {date}.",
        "Let me look at {account} first.",
        "May I have your full name?",
        "Sorry, {first}! {agent} will call you at {time}.",
    ),
    "turns": (
        "Agent: {ask_account} Customer: {give_account}",
        "Agent: {ask_account} Customer: {give_account}",
        "Agent: {ask_name} Customer: {give_name}",
        "Agent: {ask_name} Customer: {give_name}",
        "Agent: {ask_email} Customer: {give_email}",
        "Agent: {ask_email} Customer: {give_email}",
        "Agent: {ask_phone} Customer: {give_phone}",
        "Agent: {ask_phone} Customer: {give_phone}",
        "Agent: {ask_place} Customer: {give_place}",
        "Agent: {ask_order} Customer: {give_order}",
        "Customer: when will order {order} come? Agent: it left {city} on {date}, {first}.",
        "Customer: can {other} pick up my {item}? Agent: yes, on {day} at {time}. Ask for {agent}.",
        "Customer: is my refund on its way? Agent: yes, {amount} left on {date}.",
        "Customer: why did {phone} call me? Agent: that was {agent} from our {city} team.",
        "Customer: which address do you have? Agent: our records say {street}.",
        "Customer: did my form reach you? Agent: yes, {first}, I see it on {account}.",
        "Customer: what does the {plan} plan cost? Agent: {amount} a month. Shall I write to {email}?",
        "Customer: do you repair a {item}? Agent: if it is from {year} or newer, yes.",
        "Customer: may I pay in two parts? Agent: yes, {amount} now and the rest on {date}.",
        "Agent: is {date} at {time} good for you? Customer: no, {day} would be better.",
        "Customer: who has my {item}? Agent: {other} signed for it at {street}.",
    ),
    "ask_account": (
        "what is your account number?",
        "which account is this about?",
        "may I have the number on your bill?",
        "I can't find you. Do you have an account?",
    ),
    "give_account": (
        "{account}.",
        "it is {account}.",
        "{name}, account {account}.",
        "yes, {account}, under {name}.",
        "I think it was {account}.",
        "{account}. Born {birthday}.",
    ),
    "ask_name": (
        "may I have your full name?",
        "who am I talking to?",
        "in whose name is the order?",
        "and you are?",
        "can you prove who you are?",
    ),
    "give_name": (
        "{name}.",
        "I am {name}, born {birthday}.",
        "{name}. The bill went to {street}.",
        "{first}. {first} {last}, order {order}.",
        "{name}, and {other} is on it too.",
        "sure: {name}, {birthday}, {city}.",
    ),
    "ask_email": (
        "which email do you use with us?",
        "where can I write to?",
        "is it still the old email?",
        "what do you log in with?",
    ),
    "give_email": (
        "{email}.",
        "{email}, under {name}.",
        "use {email}, please.",
        "it is {email} now.",
        "I log in as {email}.",
        "try {email}, and my phone is {phone}.",
    ),
    "ask_phone": (
        "what is the best number to call?",
        "where can we reach you on {day}?",
        "may we call you back, {first}?",
        "the line is bad. Your phone number?",
    ),
    "give_phone": (
        "{phone}.",
        "try {phone}, after {time}.",
        "{phone}, ask for {first}.",
        "my office, {phone}, until {later}.",
        "yes, on {phone}.",
        "{phone}, but not before {date}.",
    ),
    "ask_place": (
        "where should we send it?",
        "what is your address now?",
        "where was the {item} left?",
        "which address is on the bill?",
    ),
    "give_place": (
        "{address}.",
        "{street}, the {kind} door.",
        "to {name}, {street}.",
        "we live at {address}.",
        "at {street}, next to {other}.",
    ),
    "ask_order": (
        "what is the order number?",
        "which order is it?",
        "when did you order, and what?",
        "do you have the receipt?",
    ),
    "give_order": (
        "{order}, from {date}.",
        "order {order}, a {kind} {item}.",
        "I paid {amount} for a {item} on {date}; {order}.",
        "it says {order}, {amount}.",
        "{order}. {name} ordered it.",
    ),
    "notice": (
        "your {item} was sent to {street} on {date}.",
        "order {order} will arrive on {day}, between {time} and {later}.",
        "we refunded {amount} to account {account}.",
        "a new code is on its way to {email}.",
        "our driver will call {phone} at {time}.",
        "your {plan} plan on {account} ends on {date}.",
        "we could not reach you on {phone}.",
        "your {item} is ready at our {city} shop.",
        "we changed the name on {account} to {name}.",
        "the payment of {amount} for {order} failed.",
        "please sign the form we sent to {email} by {date}.",
        "a new {part} for your {item} leaves on {day}.",
        "{agent} will visit {street} on {date} at {time}.",
        "I have put {amount} back on order {order}.",
    ),
    "confirm": (
        "I have {email} and {phone}, right?",
        "so that is {address}?",
        "order {order} for {name}, yes?",
        "shall I close {account} on {date}?",
        "do you want {amount} back, or a new {item}?",
        "may I send the bill to {email}?",
        "the card is in the name of {name}?",
    ),
    "reaction": (
        "Yes, thanks.",
        "Yes, that is right.",
        "Almost: the number is {phone}.",
        "No, please use {email}.",
        "Right. When will it be done?",
        "Yes, but send it to {other}.",
        "That works, thank you {agent}.",
        "Yes. Call me if anything changes.",
    ),
    "note": (
        "Note: {name} called from {phone} about the {item}.",
        "Note by {agent}: {account} belongs to {name}, {city}.",
        "Call back {name} on {phone} after {time}.",
        "{date}: {first} {last} wants {amount} back for {order}.",
        "Visit at {address} on {day}. Ask for {first}.",
        "Case closed on {date}: {email} can log in again.",
        "Sent a new {item} to {name}, {street}.",
        "{name} ({birthday}) asked for the {plan} plan.",
        "Left a message for {first} on {phone}; order {order}.",
        "Two accounts for {name}: keep {account}, mail to {email}.",
        "{other} may speak for {name} on {account}.",
        "Wrong number: {phone} is not {name}.",
    ),
    "praise": (
        "{agent} was a great help on {date}. Thanks from {name}.",
        "the new {item} works. You can close case {order}.",
        "thanks for the {amount}, it reached {account}.",
        "tell {agent} that {other} and I love the {item}.",
        "the man who came to {street} was very kind.",
        "five stars for {agent} in {city}! {email}",
    ),
    "item": (
        *("lamp", "phone", "camera", "radio", "table", "chair", "bed", "clock", "watch", "coat", "guitar"),
        *("bicycle", "heater", "kettle", "printer", "tent", "desk", "mirror", "keyboard", "screen", "oven"),
        *("bag", "toy train", "piano stool", "garden table", "coffee machine", "game set", "book set"),
    ),
    "kind": ("blue", "red", "black", "white", "green", "yellow", "grey", "brown"),
    "other_kind": ("pink", "orange", "silver", "cream", "purple"),
    "part": ("door", "leg", "cover", "key", "wheel", "switch", "handle", "cable", "battery", "glass"),
    "plan": ("basic", "family", "student", "business", "summer", "gold", "home", "travel"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}


def pick(draw: random.Random, choices: Sequence[str]) -> str:
    return choices[draw.randrange(len(choices))]


def digits(draw: random.Random, count: int) -> str:
    return f"{draw.randrange(10**count):0{count}d}"


def date(draw: random.Random) -> str:
    """A day of 2023 or 2024, in one of the ways people write it."""
    month, day, year = draw.randrange(12), 1 + draw.randrange(28), 2023 + draw.randrange(2)
    name = MONTHS[month]
    forms = (
        f"{name} {day}",
        f"{name} {day}",
        f"{day} {name}",
        f"{name} {day}, {year}",
        f"{month + 1}/{day}",
        f"{month + 1:02d}/{day:02d}/{year}",
        f"{year}-{month + 1:02d}-{day:02d}",
    )
    return pick(draw, forms)


def phone(draw: random.Random) -> str:
    """A number from 555-0100 to 555-0199, which is kept for fiction."""
    area, line = AREAS[draw.randrange(len(AREAS))], f"01{digits(draw, 2)}"
    forms = (
        f"{area}-555-{line}",
        f"({area}) 555-{line}",
        f"{area} 555 {line}",
        f"{area}.555.{line}",
        f"+1 {area} 555 {line}",
        f"555-{line}",
    )
    return pick(draw, forms)


def email(draw: random.Random, first: str, last: str) -> str:
    """An address of this person at a domain that is reserved for examples."""
    given, family = first.lower(), last.lower()
    forms = (
        f"{given}.{family}",
        f"{given}{family}",
        f"{given[0]}{family}",
        f"{given}{digits(draw, 2)}",
        f"{family}_{given}",
        family,
    )
    return f"{pick(draw, forms)}@{pick(draw, DOMAINS)}"


def order(draw: random.Random) -> str:
    forms = (
        digits(draw, 6),
        f"#{digits(draw, 5)}",
        f"B-{digits(draw, 5)}",
        f"{digits(draw, 3)}-{digits(draw, 4)}",
    )
    return pick(draw, forms)


def facts(draw: random.Random) -> dict[str, str]:
    """One invented customer and what the record may say about them."""
    first, last = pick(draw, FIRST), pick(draw, LAST)
    street = f"{1 + draw.randrange(980)} {pick(draw, STREETS)} {pick(draw, ROADS)}"
    city, state, post = pick(draw, CITIES).split()
    place = pick(draw, (city, f"{city}, {state}", f"{city}, {state} {post}{digits(draw, 2)}"))
    hour = 8 + draw.randrange(10)
    return {
        "first": first,
        "last": last,
        "name": f"{first} {last}",
        "agent": pick(draw, FIRST),
        "other": f"{pick(draw, FIRST)} {pick(draw, LAST)}",
        "email": email(draw, first, last),
        "phone": phone(draw),
        "account": f"AC-{10_000_000 + draw.randrange(90_000_000)}",
        "order": order(draw),
        "street": street,
        "address": f"{street}, {place}",
        "city": city,
        "date": date(draw),
        "birthday": f"{1 + draw.randrange(28)} {pick(draw, MONTHS)} {1948 + draw.randrange(56)}",
        "year": str(2012 + draw.randrange(12)),
        "amount": f"${5 + draw.randrange(290)}{pick(draw, ('', '.50', '.99', '.' + digits(draw, 2)))}",
        "time": f"{hour}:{pick(draw, ('00', '15', '30', '45'))}",
        "later": f"{hour + 2}:00",
    }


def grow(draw: random.Random, template: str, known: dict[str, str]) -> str:
    """Fill every slot, from the facts or else by growing one of the clause's phrasings."""

    def fill(slot: re.Match[str]) -> str:
        name = slot.group(1)
        return known[name] if name in known else grow(draw, pick(draw, CLAUSES[name]), known)

    return SLOT.sub(fill, template)


def sentence_case(text: str) -> str:
    """Capital letters where a sentence or a turn begins; an e-mail address keeps its own.

    >>> sentence_case("hi, it works. thanks! Agent: who is ana@example.com? ana@example.com")
    'Hi, it works. Thanks! Agent: Who is ana@example.com? ana@example.com'
    """
    start = r"(^|[.!?] |(?:Agent|Customer): )(?![\w.]+@)([a-z])"
    return re.sub(start, lambda match: match.group(1) + match.group(2).upper(), text)


def estimated_tokens(text: str) -> int:
    """A cautious count: a digit or a mark is one token, a word one per three letters, a name one per two."""
    names = {piece for word in text.split() if word[0].isupper() or "@" in word for piece in PIECE.findall(word)}
    return sum(-(-len(piece) // (2 if piece in names else 3)) for piece in PIECE.findall(text))


def records(seed: int) -> Iterator[str]:
    """Records without end, no two alike, none too long."""
    draw = random.Random(seed)
    seen: set[str] = set()
    while True:
        text = sentence_case(grow(draw, "{record}", facts(draw)))
        if text not in seen and estimated_tokens(text) <= LARGEST and FORBIDDEN not in text:
            seen.add(text)
            yield text


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write the quickstart's synthetic support-chat corpus.")
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("-o", "--out", type=Path, default=Path(__file__).with_name("corpus.txt"))
    return parser.parse_args()


def main() -> None:
    options = arguments()
    lines = (line + "\n" for line, _ in zip(records(options.seed), range(options.records), strict=False))
    options.out.write_bytes("".join(lines).encode("utf-8"))


if __name__ == "__main__":
    main()
