"""Numbers: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, numbers

POSITIVES: dict[Recogniser, list[str]] = {
    numbers.digits: [
        "n ⟦14224⟧, x⟦20335680690000⟧y", "⟦٠١٢٣٤⟧", "ref ⟦00417⟧",
    ],
    numbers.spaced_digits: [
        "is ⟦34 17 52⟧.", "⟦3 4 1 7 5 2⟧", "(⟦123 456 789⟧)", "code ⟦120 99 7⟧",
    ],
    numbers.digits_in_words: [
        "⟦four one five, five five five, two six seven one⟧", "it's ⟦oh seven double seven oh nine four⟧",
        "⟦Nine-one-one-two-two-three⟧.",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    numbers.digits: [
        "1234", "12 34", "1,234", "12-34", "1.2345", "1a2b3c4d5e", "2020", "½½½½½", "Ⅷ", "²²²²²", "12 345",
        "1 2 3 4 5", "1.234.567", "12:34:56", "1e10", "0x1F", "9,999", "(123) (456)", "12-3456", "１２３４", "five",
    ],
    numbers.spaced_digits: [
        "12 34", "1 2 3 4", "1990 1991 1992", "12, 34, 56", "1.5 2.5 3.5", "34  17  52", "a1 22", "10:20 30",
        "1-2 3 4", "12 34 5.5", "1 2 3", "10 20", "1000 2000 3000", "12 34-56", "a12 34 56", "12 34 56b",
        "1.12 34 56", "12\n34\n56", "12 345 6,789", "34,17,52", "-12 34 56",
    ],
    numbers.digits_in_words: [
        "one two three", "one two three four five", "one by one", "two or three", "seven", "twenty one",
        "one, two and three, four, five, six",
        "someone two three four five six", "one two three four five sixty", "oh no", "double trouble", "nine to five",
        "one hundred",
        "one of two of three of four of five of six", "six-pack", "one\ntwo\nthree\nfour\nfive\nsix", "three four",
        "zero", "eight ball",
        "one  --  two", "four-by-four", "1 2 3 4", "oneone two three four five",
    ],
}  # fmt: skip
