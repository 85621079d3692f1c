"""People by lists of names: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, names

POSITIVES: dict[Recogniser, list[str]] = {
    names.listed_name: [
        "⟦jorge ramirez⟧ called", "pls ask ⟦lena fischer⟧ tomorrow", "hi its ⟦priya⟧, again", "cc ⟦Ryan P Costa⟧",
        "⟦codey m. ross⟧ left", "told ⟦mark ramirez⟧ to wait", "⟦OLGA KRYLOVA⟧", "⟦olga krylova⟧'s file",
        "⟦Anne-Laure Dubois⟧ and ⟦Jamal⟧", "from ⟦ramirez⟧ to ⟦okonkwo⟧", "⟦oluwaseun adeyemi⟧, order 3",
    ],
    names.firm_of_surnames: [
        "at ⟦hubbard, fox and gillespie⟧ since", "⟦Davis, Reynolds and Williamson⟧", "⟦Clark, Romero, and Hall⟧ sued",
    ],
    names.listed_place: [
        "from ⟦berlin⟧ to ⟦new york⟧", "⟦Slovenia⟧, ⟦CANADA⟧ and ⟦south korea⟧", "moved to ⟦buenos aires⟧ in",
        "⟦Turkey⟧ and ⟦St. Louis⟧", "in ⟦Guinea-Bissau⟧.",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    names.listed_name: [
        "will you come", "a rose garden", "mark the date", "may i ask", "the apple pie", "python is slow", "hope so",
        "good grace", "by chance", "in june", "a bill for you", "an art class", "the bell rang", "add Ramirez",
        "early Ramirez", "i was frank", "cash or card", "lol omg vid", "thx pls imo", "ok", "a b c", "an angel",
        "my baby", "the captain", "chase them", "summer sale", "123 456", "...", "Costa's", "brown bread",
    ],
    names.firm_of_surnames: [
        "red, white and blue", "bread, butter and jam", "Monday, Tuesday and Friday", "fox and gillespie",
        "hubbard, fox or gillespie", "hubbard; fox and gillespie", "hubbard, fox and", "hubbard fox and gillespie",
        "hubbard, fox and\ngillespie", "one, two and three", "here, there and everywhere", "hubbard, and gillespie",
        "hubbard, fox, gillespie", "and, and and and", "up, down and out", "big, old and ugly", "cats, dogs and birds",
        "tea, milk and sugar", "he, she and it", "Berlin, Rome and 3", "fox, and", "now, then and again",
    ],
    names.listed_place: [
        "a turkey sandwich", "new yorker", "york", "new", "the south", "fine china", "korea's", "an indian", "german",
        "a nice day", "stlouis", "buenos dias", "aires", "to and from", "in town", "los angles", "united we stand",
        "hong", "costa", "el", "san", "rio", "the americans", "parish", "berliner",
    ],
}  # fmt: skip
