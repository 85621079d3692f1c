"""The layout of Parquet: one row a record, the text or the conversation in one column."""

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from atdp_cli.corpus.conversation import TOOLS, Chat, Part, read_conversation, with_texts
from atdp_cli.corpus.csv import column_of
from atdp_cli.corpus.json_text import object_members
from atdp_cli.corpus.segments import Segment, Selection, record_numbers
from atdp_cli.errors import InputError, RunError
from atdp_cli.files.corpus_file import OnError, Writable, display_name, unreadable
from atdp_cli.files.documents import open_regular

_ROWS = 8192
"""Rows decoded at a time, and the most in a row group of a rewritten file."""


def parquet_segments(path: Path, selection: Selection, on_error: OnError) -> Iterator[Segment]:
    """Read the segments of a Parquet file, as `record.read_segments` does. Faults of the schema and damage of the file
    are never skipped.
    """
    record = record_numbers(selection)
    with _opened(path) as file:
        _check_columns(path, file.schema_arrow, selection)
        fields = _fields(file.schema_arrow, selection)
        columns = list(dict.fromkeys([*fields, selection.key or fields[0]]))
        for first, batch in _batches(path, file, columns):
            keys = None if selection.key is None else batch.column(selection.key)
            for at in range(batch.num_rows):
                row = first + at + 1
                where = f"{display_name(path)}: row {row}"
                try:
                    values = {name: _cell(batch.column(name), at, where, name) for name in fields}
                    id_ = str(row if keys is None else _cell(keys, at, where, selection.key))
                    texts = _texts(values, f"{where}: the column {selection.text_field}", selection)
                except InputError as error:
                    on_error(error)
                    continue
                yield from texts.segments(record(id_), id_, row=row - 1)
    yield Segment("", None)


def parquet_names(path: Path) -> list[str]:
    """The names of the columns."""
    with _opened(path) as file:
        return list(file.schema_arrow.names)


def write_rows(source: Path, selection: Selection, edited: Iterator[tuple[Segment, str]], stream: Writable) -> None:
    """Write the rows of `source` that `edited` names, in order, with its texts in the text field.

    Schema, metadata, the other columns' values and each column's codec stay; row groups do not. A dictionary of texts
    gets indices of 32 bits, as there may be more texts than before.

    Args:
        source: A Parquet file.
        selection: How `edited` was read.
        edited: Segments of `source` in file order with their new texts, the end of the file last.

    Raises:
        RunError: Parquet cannot be written for this schema.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with _opened(source) as file:
            schema = _written_schema(file.schema_arrow, selection.fields)
            batches = _edited_batches(source, file, schema, selection, edited)
            # Metadata that reading refuses ends the process when the codecs are asked for first.
            batch = next(batches, None)
            with pq.ParquetWriter(stream, schema, compression=_codecs(file)) as writer:
                for each in itertools.chain([] if batch is None else [batch], batches):
                    writer.write_batch(each)
    except pa.ArrowException as error:
        raise RunError(
            f"The columns of {display_name(source)} cannot be written as Parquet.", "Convert the file to JSON Lines."
        ) from error


def _written_schema(schema: Any, fields: Sequence[str]) -> Any:
    import pyarrow as pa

    for name in fields:
        place = schema.get_field_index(name)
        field = schema.field(place)
        if pa.types.is_dictionary(field.type):
            schema = schema.set(place, field.with_type(pa.dictionary(pa.int32(), field.type.value_type)))
    return schema


def _edited_batches(
    source: Path, file: Any, schema: Any, selection: Selection, edited: Iterator[tuple[Segment, str]]
) -> Iterator[Any]:
    import pyarrow as pa

    fields = _fields(schema, selection)
    segment, text, first = *next(edited), 0
    for first, batch in _batches(source, file, None):
        texts: dict[int, list[str]] = {}
        while segment.text is not None and segment.row < first + batch.num_rows:
            texts.setdefault(segment.row - first, []).append(text)
            segment, text = next(edited)
        selected = batch if len(texts) == batch.num_rows else batch.take(pa.array(list(texts), pa.int64()))
        if texts:
            rows = [
                _rewritten({name: batch.column(name)[row].as_py() for name in fields}, each, selection)
                for row, each in texts.items()
            ]
            for name in fields:
                place = schema.get_field_index(name)
                values = pa.array([row[name] for row in rows], schema.field(place).type)
                selected = selected.set_column(place, schema.field(place), values)
            yield selected
    if segment.text is not None:
        raise _damaged(source, first)  # the other columns have fewer rows than the text


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(pq.ParquetFile(stack.enter_context(open_regular(path))))
            # The names are first decoded when they are shown; damaged ones must fail here.
            file.schema_arrow.to_string()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unread(path, error, 0) from error
        yield file


def _batches(path: Path, file: Any, columns: list[str] | None) -> Iterator[tuple[int, Any]]:
    """Each batch with its first row's number, from 0."""
    import pyarrow as pa

    row = 0
    try:
        # One iterator over all row groups would hold what it has read of each.
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(_ROWS, row_groups=[group], columns=columns):
                yield row, batch
                row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _unread(path, error, row) from error


def _unread(path: Path, error: Exception, row: int) -> InputError:
    if isinstance(error, OSError) and error.errno is not None:
        return unreadable(path, error)
    return _damaged(path, row)


def _damaged(path: Path, row: int) -> InputError:
    where = f" after row {row}" if row else ""
    return InputError(
        f"{display_name(path)} is not Parquet, or damaged{where}.",
        "Write or copy the file again; encrypted files are not read.",
    )


def _check_columns(path: Path, schema: Any, selection: Selection) -> None:
    from pyarrow import types

    for name in selection.fields:
        kind = schema.field(column_of(schema.names, name, path)).type
        messages = types.is_list(kind) or types.is_large_list(kind)
        if not (_holds_strings(kind) or messages):
            raise InputError(
                f"{display_name(path)}: the column {name} holds neither strings nor lists of messages.",
                "Name the column that holds the text with --text-field.",
            )
    if selection.key is None:
        return
    kind = schema.field(column_of(schema.names, selection.key, path)).type
    if not (_holds_strings(kind) or types.is_integer(kind.value_type if types.is_dictionary(kind) else kind)):
        raise InputError(
            f"{display_name(path)}: the column {selection.key} holds neither strings nor whole numbers.",
            "Use another column.",
        )


def _holds_strings(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _fields(schema: Any, selection: Selection) -> list[str]:
    """The columns of a record's texts, and that of a conversation's tools."""
    return [*selection.fields, *(name for name in (TOOLS,) if name in schema.names)]


def _texts(values: Mapping[str, Any], where: str, selection: Selection) -> Chat:
    """The texts of a row, in JSON of its columns where it holds a conversation."""
    if len(selection.fields) == 1 and isinstance(text := values[selection.text_field], str):
        return Chat("", (Part(-1, "", text, 0, 0),))
    line = json.dumps(values, ensure_ascii=False, default=str)
    return read_conversation(line, object_members(line)[0], selection.fields, where)


def _rewritten(values: Mapping[str, Any], others: Sequence[str], selection: Selection) -> Mapping[str, Any]:
    """The columns of a row with other texts in the place of its own."""
    chat = _texts(values, "", selection)
    if not chat.line:
        return {**values, selection.text_field: others[0]}
    written = [part.written(chat.line, other) for part, other in zip(chat.parts, others, strict=True)]
    return dict(_merged(values, json.loads(with_texts(chat.line, chat.parts, written))))


def _merged(before: Any, after: Any) -> Any:
    """A value of Arrow with the strings and numbers of its JSON."""
    if isinstance(before, dict):
        return {key: _merged(each, after[key]) for key, each in before.items()}
    if isinstance(before, list):
        return [_merged(*pair) for pair in zip(before, after, strict=True)]
    return after if isinstance(before, str | int | float) and type(before) is type(after) else before


def _cell(column: Any, at: int, where: str, name: str | None) -> Any:
    try:
        value = column[at].as_py()
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the column {name} is not UTF-8.", "Write the file again.") from error
    if value is None and name != TOOLS:
        raise InputError(f"{where} has no value in the column {name}.", "Fill it in, or leave the row out.")
    return value


def _codecs(file: Any) -> dict[str, str] | str:
    """The codec of each column, as far as the writer has it."""
    if not file.num_row_groups:
        return "SNAPPY"
    group = file.metadata.row_group(0)
    known = {"UNCOMPRESSED": "NONE", "GZIP": "GZIP", "BROTLI": "BROTLI", "ZSTD": "ZSTD", "LZ4": "LZ4", "LZ4_RAW": "LZ4"}
    codecs = {
        file.schema.column(at).path: known.get(group.column(at).compression, "SNAPPY")
        for at in range(group.num_columns)
    }
    return codecs if len(set(codecs.values())) > 1 else next(iter(codecs.values()))
