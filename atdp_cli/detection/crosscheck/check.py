"""The cross-check: asks a language model about each sentence, keeps the answers, and flags what it disagrees on."""

import bisect
import hashlib
import hmac
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

from atdp_cli.corpus.spans import Range, Span, Tier, at_tier, merge
from atdp_cli.detection.detect import PLACEHOLDERS, Detection
from atdp_cli.detection.results import CrosscheckCounts
from atdp_cli.errors import RunError
from atdp_cli.files.cache import CacheFormat, SqliteCache
from atdp_cli.files.corpus_file import LONE_SURROGATE
from atdp_cli.files.regexes import Pattern
from atdp_cli.replacement.edits import redact_text

ANSWERS = CacheFormat(name="crosscheck", table="answers", columns=("question", "sensitive"))

_YES, _NO = b"1", b"0"


class Answers:
    """Answers by the text that was asked about; used from several threads.

    Args:
        cache: Where they are kept; None to keep them for this run only.
    """

    def __init__(self, cache: SqliteCache | None = None) -> None:
        self._cache = cache
        self._answers: dict[bytes, bool] = {}

    def get(self, text: str) -> bool | None:
        """Return the answer, or None if there is none yet.

        Raises:
            RunError: The file cannot be read.
        """
        content = text.encode()
        if self._cache is None:
            return self._answers.get(hashlib.sha256(content).digest())
        answer = self._cache.get(content)
        return None if answer is None else answer == _YES

    def put(self, text: str, answer: bool) -> None:
        """Keep an answer; it is on disk when this returns. An answer after the end of the run is dropped.

        Raises:
            RunError: The file cannot be written.
        """
        content = text.encode()
        if self._cache is None:
            self._answers[hashlib.sha256(content).digest()] = answer
        else:
            self._cache.put(content, _YES if answer else _NO)


@contextmanager
def opened_answers(folder: Path | None, *scope: object) -> Iterator[Answers]:
    """Open the answers in a private folder, which is created if needed. Without a folder they last for this run.

    Args:
        folder: A folder that only its owner may read.
        scope: Who is asked and how: values that JSON can write. Answers of another scope are not found.

    Raises:
        RunError: The folder or a file in it cannot be used.
    """
    if folder is None:
        yield Answers()
        return
    encoded = json.dumps(scope).encode()

    def digest(key: bytes, text: bytes) -> bytes:
        return hmac.digest(hmac.digest(key, encoded, "sha256"), text, "sha256")

    with closing(SqliteCache(folder, ANSWERS, digest, on_trouble=_refuse)) as cache:
        yield Answers(cache)


def _refuse(file: Path, reason: str) -> None:
    raise RunError(
        f"{file} could not be used ({reason}).",
        "Check free space and permissions; deleting it loses only answers, which are asked for again.",
    )


Answer = bool | None
"""Whether a text has something sensitive left; None for an answer that nobody can read."""

Ask = Callable[[str], Answer]
"""Asks about one text."""

Job = Callable[[], Answer]
"""Answers a question."""

SubmitJob = Callable[[Job], "Future[Answer]"]
"""Hands a job to the threads."""


@contextmanager
def thread_pool(size: int) -> Iterator[SubmitJob]:
    """Run jobs in threads until the block ends. Jobs in progress are then abandoned.

    Args:
        size: How many jobs run at once.
    """
    # ThreadPoolExecutor would make the process wait at its end for every request that is on its way.
    ended = threading.Event()
    jobs: SimpleQueue[tuple[Job, Future[Answer]] | None] = SimpleQueue()

    def work() -> None:
        while (submitted := jobs.get()) is not None and not ended.is_set():
            job, future = submitted
            try:
                future.set_result(job())
            except BaseException as error:
                future.set_exception(error)

    def submit(job: Job) -> "Future[Answer]":
        future: Future[Answer] = Future()
        jobs.put((job, future))
        return future

    for _ in range(size):
        threading.Thread(target=work, daemon=True).start()
    try:
        yield submit
    finally:
        ended.set()
        for _ in range(size):
            jobs.put(None)


LABEL, SOURCE = "CROSSCHECK", "crosscheck"

REQUESTS = 4
"""How many questions are on their way at once."""

LOOK_AHEAD = 256
"""How many sentences may wait for an answer before the next record is taken."""

LONGEST = 4_000
"""The most characters of a sentence that are asked about at once; models have a largest context."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a sentence.

    Attributes:
        place: The sentence, without the white space around it.
        text: What is sent.
        expected: The answer that agrees with the detector.
    """

    place: Range
    text: str
    expected: bool


def crosscheck(
    detections: Iterable[Detection],
    ask: Ask,
    answers: Answers,
    counts: CrosscheckCounts,
    *,
    tier: Tier,
    masked: bool = True,
    allow: Sequence[Pattern] = (),
    dispute: bool = False,
) -> Iterator[Detection]:
    """Flag every sentence about which the model disagrees with the detector. Detections stay in order.

    Masked, the model sees a sentence with placeholders over its spans, and disagrees where it finds something
    sensitive in the rest. Otherwise it sees the sentence itself, and disagrees where its answer is another than
    whether the detector flagged something there.

    Args:
        detections: What the detector found.
        ask: Asks the model; called from several threads.
        answers: Answers from before, which are not asked for again; each new one is put there as it comes.
        counts: Counted up.
        tier: What counts as found.
        masked: Whether spans are masked in what is sent.
        allow: What people found not to be sensitive; a sentence that has nothing else is not asked about.
        dispute: Put disagreements into `Detection.disputed` in place of flagging the sentence.

    Raises:
        RunError: The model cannot be asked.
    """
    waiting: deque[_Waiting] = deque()
    sentences = 0
    with thread_pool(REQUESTS) as submit:
        inquiry = _Inquiry(ask, answers, counts, submit)
        for detection in detections:
            about = questions(detection, tier, masked=masked, allow=allow)
            pending = tuple((question, inquiry.answer(question.text)) for question in about)
            waiting.append(_Waiting(detection, pending))
            sentences += len(pending)
            while waiting and (sentences > LOOK_AHEAD or waiting[0].answered):
                head = waiting.popleft()
                sentences -= len(head.pending)
                yield _judged(head, counts, dispute=dispute)
        while waiting:
            yield _judged(waiting.popleft(), counts, dispute=dispute)


def questions(detection: Detection, tier: Tier, *, masked: bool, allow: Sequence[Pattern] = ()) -> Iterator[Question]:
    """Yield the questions about a record. A sentence is left out if all its letters and digits are settled.

    Spans, placeholders and what people allow are settled.
    """
    text = detection.record.text
    spans = merge(at_tier(detection.spans, tier))
    settled = bytearray(len(text))
    matches = (match.span() for pattern in (PLACEHOLDERS, *allow) for match in pattern.finditer(text))
    for start, end in (*matches, *((span.start, span.end) for span in spans)):
        settled[start:end] = b"\1" * (end - start)
    first = 0
    for start, end in _pieces(text, detection.sentences):
        while first < len(spans) and spans[first].end <= start:
            first += 1
        inside = _inside(spans, first, start, end)
        if any(text[at].isalnum() and not settled[at] for at in range(start, end)):
            sent = redact_text(text[start:end], inside).text if masked else text[start:end]
            # UTF-8 cannot write half a character.
            yield Question((start, end), LONE_SURROGATE.sub("\ufffd", sent), expected=not masked and bool(inside))


def _pieces(text: str, sentences: Iterable[Range]) -> Iterator[Range]:
    """The sentences without the white space around them, long ones cut."""
    for begin, end in sentences:
        for start in range(begin, end, LONGEST):
            piece = text[start : min(end, start + LONGEST)]
            if stripped := piece.strip():
                at = start + len(piece) - len(piece.lstrip())
                yield at, at + len(stripped)


def _inside(spans: Sequence[Span], first: int, start: int, end: int) -> tuple[Span, ...]:
    """The parts of the sorted spans, from `first` on, that lie in a range, counted from its start."""
    last = bisect.bisect_left(spans, end, lo=first, key=lambda span: span.start)
    return tuple(
        replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in spans[first:last]
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    detection: Detection
    pending: tuple[tuple[Question, "Future[Answer]"], ...]

    @property
    def answered(self) -> bool:
        return all(future.done() for _, future in self.pending)


@dataclass(frozen=True, slots=True)
class _Inquiry:
    """Where answers come from: those on their way, those already known, or the model.

    Attributes:
        open: Questions on their way and those without a usable answer, by the digest of their text.
    """

    ask: Ask
    answers: Answers
    counts: CrosscheckCounts
    submit: SubmitJob
    open: dict[bytes, "Future[Answer]"] = field(default_factory=dict)

    def answer(self, text: str) -> "Future[Answer]":
        digest = hashlib.sha256(text.encode("utf-8")).digest()
        # In this order: an answer is kept before its question is no longer open.
        if (future := self.open.get(digest)) is not None:
            self.counts.known += 1
            return future
        future = Future()
        if (answer := self.answers.get(text)) is not None:
            self.counts.known += 1
            future.set_result(answer)
            return future
        self.counts.asked += 1
        self.open[digest] = future = self.submit(lambda: self._asked(text, digest))
        return future

    def _asked(self, text: str, digest: bytes) -> Answer:
        answer = self.ask(text)
        if answer is None:
            answer = self.ask(text)
        if answer is not None:
            self.answers.put(text, answer)
            del self.open[digest]
        return answer


def _judged(waiting: _Waiting, counts: CrosscheckCounts, *, dispute: bool) -> Detection:
    """A detection once its answers have come."""
    detection, places = waiting.detection, []
    for question, future in waiting.pending:
        answer = future.result()
        counts.unusable += answer is None
        if answer is not question.expected:
            places.append(question.place)
    counts.disagreements += len(places)
    if dispute:
        return replace(detection, disputed=tuple(places))
    flagged = (Span(start, end, LABEL, SOURCE, Tier.LOW_ENTITY) for start, end in places)
    return replace(detection, spans=tuple(sorted((*detection.spans, *flagged))))
