"""Templates, drawing and planting."""

import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atdp_cli.audit.canary import Characters, Choice, Template, choice_files, find_template, parse_template
from atdp_cli.audit.draw import draw_secrets, plant, toss_coins
from atdp_cli.errors import AtdpError, InputError, UsageError

ID = parse_template("My ID is {digits:6}")


@pytest.mark.parametrize(
    ("text", "pool", "first", "last"),
    [
        ("My ID is {digits:6}", 10**6, "My ID is 000000", "My ID is 999999"),
        ("{digits:8}", 10**8, "00000000", "99999999"),
        ("{hex:2}-{digits:1}", 2560, "00-0", "ff-9"),
        ("{hex:4} it is.", 16**4, "0000 it is.", "ffff it is."),
        ("code {letters:3}!", 26**3, "code aaa!", "code zzz!"),
        ('{"id": "{digits:2}"}', 100, '{"id": "00"}', '{"id": "99"}'),
    ],
)
def test_a_template_is_read_and_written_back(text: str, pool: int, first: str, last: str) -> None:
    template = parse_template(text)
    assert str(template) == text
    assert template.pool == pool
    assert template.record(template.secret(0)) == first
    assert template.record(template.secret(pool - 1)) == last


@pytest.mark.parametrize("text", ["a{digits:2}b", "{hex:2}", "x {letters:2}", "{digits:1} of {letters:1}{digits:1}"])
def test_candidates_come_in_order_and_index_of_finds_them(text: str) -> None:
    template = parse_template(text)
    candidates = list(template.candidates())
    assert candidates == sorted(candidates)
    assert len(set(candidates)) == template.pool
    for index, candidate in enumerate(candidates):
        assert template.record(template.secret(index)) == candidate
        assert template.index_of(template.secret(index)) == index


def test_a_slot_takes_the_lines_of_a_file() -> None:
    text = "{choice:names.txt} has the code {digits:1}{choice:names.txt}"
    names = ("Ann", "Bob", "Ann-Lee")
    assert choice_files(text) == ("names.txt",)
    template = parse_template(text, {"names.txt": names})
    assert template.slots == (Choice("names.txt", names), Characters("digits", 1), Choice("names.txt", names))
    assert str(template) == text
    assert list(template.candidates()) == [f"{a} has the code {d}{b}" for a in names for d in range(10) for b in names]
    for index in range(template.pool):
        assert template.index_of(template.secret(index)) == index
    with pytest.raises(InputError):
        template.index_of(("Ann", "3", "Eve"))
    with pytest.raises(InputError):
        template.index_of(("Ann", "3"))


@pytest.mark.parametrize("names", [(), ("Ann", "Ann"), ("Ann",), ("Ann", "B\nob"), ("Ann", "Bob\u2028")])
def test_choices_that_are_none_or_not_lines_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_template("It was {choice:f}", {"f": names})
    assert_one_line(caught.value)


def test_coins_are_fair_and_independent() -> None:
    tossed = toss_coins(20_000)
    pairs = Counter(zip(tossed[::2], tossed[1::2], strict=True))
    # Chi-squared with 3 degrees of freedom: beyond 35 with probability 1.2e-7.
    assert sum((pairs[pair] - 2500) ** 2 / 2500 for pair in ((a, b) for a in (False, True) for b in (False, True))) < 35


@pytest.mark.parametrize(
    "text",
    [
        "",
        "My ID is 341752",
        "{digits:2}" * 17,
        "{choice:names.txt}",
        "{digits:65}",
        "{word:3}",
        "{digits:0}",
        "{digits:}",
        "{digits:-1}",
        "{digits:12345678901234567890}",
        "{digits:9999}",
        "two\nlines {digits:2}",
        "two\u2028lines {digits:2}",
    ],
)
def test_a_bad_template_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_template(text)
    assert_one_line(caught.value)


@pytest.mark.parametrize("secret", ["", "12345", "1234567", "12345a", "१२३४५६"])
def test_a_secret_that_does_not_fit_is_refused_without_being_quoted(secret: str) -> None:
    with pytest.raises(InputError) as caught:
        ID.index_of((secret,))
    assert_one_line(caught.value)
    assert not secret or secret not in str(caught.value)


def test_a_finished_canary_gives_its_last_digits() -> None:
    template, secret = find_template("On 12 May my ID was 341752, honestly")
    assert str(template) == "On 12 May my ID was {digits:6}, honestly"
    assert secret == ("341752",)


@pytest.mark.parametrize("text", ["no number", "", "My ID is {digits:6} 12", "1" * 65, "1" * 6000, "a\n12"])
def test_a_finished_canary_without_a_usable_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_template(text)
    assert_one_line(caught.value)
    assert not re.search("1{8}", str(caught.value))


def test_draws_are_uniform_and_independent() -> None:
    template = parse_template("{digits:1}")
    drawn = Counter(draw_secrets(template, 10_000))
    assert set(drawn) == {(digit,) for digit in "0123456789"}
    # Chi-squared with 9 degrees of freedom: beyond 50 with probability 1e-7.
    assert sum((count - 1000) ** 2 / 1000 for count in drawn.values()) < 50
    assert len(set(draw_secrets(template, 11))) < 11, "with more draws than secrets some repeat"


def test_nothing_is_drawn_for_no_canaries() -> None:
    with pytest.raises(UsageError):
        draw_secrets(ID, 0)


LINES = st.lists(st.sampled_from(["", " ", "a", "b c", "\t", "é\r"]), min_size=1, max_size=30).filter(
    lambda lines: any(line.strip() for line in lines)
)


@settings(max_examples=200, deadline=None)
@given(lines=LINES, repeats=st.lists(st.integers(1, 5), max_size=4))
def test_planting_puts_each_repeat_at_its_position_and_leaves_the_rest(lines: list[str], repeats: list[int]) -> None:
    secrets = draw_secrets(ID, len(repeats)) if repeats else ()
    planted, positions = plant(lines, ID, secrets, repeats)
    taken = {line for group in positions for line in group}
    assert [len(group) for group in positions] == repeats
    assert len(taken) == sum(repeats)
    assert all(list(group) == sorted(group) for group in positions)
    for (secret,), group in zip(secrets, positions, strict=True):
        assert all(planted[line - 1] == f"My ID is {secret}" for line in group)
    assert [text for line, text in enumerate(planted, 1) if line not in taken] == lines
    again, same = plant(lines, ID, secrets, repeats, positions=positions)
    assert (again, same) == (planted, positions)


def test_a_file_that_ends_in_a_newline_still_does() -> None:
    for _ in range(20):
        planted, _positions = plant(["a", "b", ""], ID, (("000000",),), 3)
        assert planted[-1] == ""
        assert planted[-2] != ""


def test_positions_are_uniform_among_records() -> None:
    lines = ["a", "", "b", "c", "", "", "d"]
    slots: Counter[int] = Counter()
    for _ in range(4000):
        planted, _positions = plant(lines, ID, (("000000",), ("111111",)), 1)
        slots[[text for text in planted if text].index("My ID is 000000")] += 1
    assert set(slots) == set(range(6))
    # Chi-squared with 5 degrees of freedom: beyond 40 with probability 1.5e-7.
    assert sum((count - 4000 / 6) ** 2 / (4000 / 6) for count in slots.values()) < 40


@pytest.mark.parametrize(
    "positions",
    [((1,), (1,)), ((0,), (1,)), ((1,), (6,)), ((1, 2), (3,)), ((1,),), ((), ())],
)
def test_positions_that_do_not_fit_are_refused(positions: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputError) as caught:
        plant(["a", "b", "c"], ID, (("000000",), ("111111",)), 1, positions=positions)
    assert_one_line(caught.value)


@pytest.mark.parametrize(
    ("attempt", "kind"),
    [
        (lambda: plant([" ", ""], ID, (("000000",),), 1), InputError),
        (lambda: plant([], ID, (("000000",),), 1), InputError),
        (lambda: plant(["a"], ID, (("000000",),), 0), UsageError),
        (lambda: plant(["a"], ID, (("000000",),), [1, 1]), UsageError),
    ],
)
def test_planting_nowhere_or_nothing_is_refused(attempt: Callable[[], object], kind: type[AtdpError]) -> None:
    with pytest.raises(kind) as caught:
        attempt()
    assert_one_line(caught.value)


def test_templates_are_values() -> None:
    assert Template(texts=("My ID is ", ""), slots=(Characters("digits", 6),)) == ID


def assert_one_line(error: AtdpError) -> None:
    assert len(str(error).splitlines()) == 1
    assert "000000" not in str(error)
    assert len(str(error)) < 300
