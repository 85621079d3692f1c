"""What is held out: records or whole groups of them, by position alone."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atdp_cli.corpus.split import HOLD_OUT_AT_MOST, Split, held_out_groups, held_out_positions, load_split
from atdp_cli.errors import InputError, UsageError

GROUPS = st.lists(st.integers(0, 60), min_size=1, max_size=400)


def split(*paths: Path, unit: str = "line", max_records: int | None = None, **options: Path | str | None) -> Split:
    return load_split(paths, unit=unit, text_field="text", max_records=max_records, **{"valid": None, **options})  # type: ignore[arg-type]


@given(GROUPS)
def test_groups_are_held_out_whole_or_not_at_all(groups: list[int]) -> None:
    held_out = held_out_groups(groups)
    outside = {group for place, group in enumerate(groups) if place not in held_out}
    assert not outside & {groups[place] for place in held_out}
    assert outside
    assert bool(held_out) is (len(set(groups)) > 1)


@given(GROUPS, st.permutations(range(61)))
def test_what_groups_are_called_does_not_matter(groups: list[int], names: list[int]) -> None:
    assert held_out_groups([names[group] for group in groups]) == held_out_groups(groups)


@given(st.integers(2, 12_000))
def test_groups_of_one_record_are_held_out_as_records_are(records: int) -> None:
    assert held_out_groups(range(records)) == frozenset(held_out_positions(records))


@given(st.lists(st.integers(1, 300), min_size=2, max_size=90))
def test_at_most_so_many_records_are_held_out_but_one_group(sizes: list[int]) -> None:
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    held_out = held_out_groups(groups)
    assert len(held_out) <= HOLD_OUT_AT_MOST or len({groups[place] for place in held_out}) == 1


def chats(folder: Path, conversations: int, lines: int = 3) -> Path:
    path = folder / "chats.txt"
    path.write_text("\n\n".join("\n".join(f"USR: {c} {n}" for n in range(lines)) for c in range(conversations)) + "\n")
    return path


def test_conversations_between_blank_lines(tmp_path: Path) -> None:
    whole = split(chats(tmp_path, 45), holdout_by="blank-line")
    assert [whole.records[place].text for place in sorted(whole.held_out)] == [
        f"USR: {conversation} {line}" for conversation in (19, 39) for line in range(3)
    ]
    assert whole.training == 45 * 3 - 6


@given(st.text("ab1 ", min_size=1, max_size=8).filter(str.strip))
def test_flagged_text_has_no_say(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    folder = tmp_path_factory.mktemp("pair")
    path = chats(folder, 41)
    before = split(path, holdout_by="blank-line").held_out
    path.write_text(path.read_text().replace("USR: 19", f"USR: {value.strip()}").replace("USR: 7", "Z"))
    assert split(path, holdout_by="blank-line").held_out == before


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_users_are_held_out_wherever_their_records_stand(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"chats.{kind}"
    rows = [(number * 7 % 25, f"said {number}") for number in range(100)]
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"user": user, "text": text}) + "\n" for user, text in rows))
    else:
        path.write_text("user,text\n" + "".join(f"{user},{text}\n" for user, text in rows))
    whole = split(path, holdout_by="user")
    users = {user for place, (user, _) in enumerate(rows) if place in whole.held_out}
    assert len(users) == 1
    assert whole.held_out == {place for place, (user, _) in enumerate(rows) if user in users}
    assert [record.id for record in whole.records] == [record.id for record in split(path).records]
    assert split(path, holdout_by="user", max_records=30).held_out < set(range(30))


def test_by_record_is_the_default(tmp_path: Path) -> None:
    path = chats(tmp_path, 30)
    assert split(path, holdout_by="record") == split(path)


REFUSED = [
    ("a.txt", "line", "user", "a corpus with fields"),
    ("a.jsonl", "line", "blank-line", "Name the field"),
    ("a.txt", "paragraph", "blank-line", "--privacy-unit paragraph has other records"),
    ("a.jsonl", "user", "user", "--privacy-unit user has other records"),
]


@pytest.mark.parametrize(("name", "unit", "by", "said"), REFUSED)
def test_groups_that_are_not_declared_are_refused(tmp_path: Path, name: str, unit: str, by: str, said: str) -> None:
    path = tmp_path / name
    path.write_text('{"text": "a", "user": "b"}\n' * 3)
    with pytest.raises(UsageError) as refused:
        split(path, unit=unit, holdout_by=by)
    assert said in f"{refused.value.problem} {refused.value.remedy}"


def test_a_held_out_file_leaves_nothing_to_choose(tmp_path: Path) -> None:
    path = chats(tmp_path, 3)
    with pytest.raises(UsageError, match="--eval-data is what is held out"):
        split(path, holdout_by="blank-line", valid=path)


def test_one_conversation_cannot_be_divided(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the whole corpus is one group"):
        split(chats(tmp_path, 1), holdout_by="blank-line")


def test_a_field_that_is_missing_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n' * 3)
    with pytest.raises(InputError, match="line 1 has no field user"):
        split(path, holdout_by="user")
