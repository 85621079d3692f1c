"""A corpus in another language than the pipeline's is noticed, and English of any kind is not taken for one."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import spacy

from atdp_cli.corpus.record import Record
from atdp_cli.detection.detector import missed_names
from atdp_cli.detection.language import (
    LANGUAGES,
    SAMPLE,
    SCRIPTS,
    Language,
    other_language,
    stop_words,
    watched_language,
)

TEXTS = {
    "German": "Guten Tag, ich habe vor drei Wochen ein Paket bestellt und es ist noch immer nicht bei mir angekommen. "
    "Können Sie mir bitte sagen, wo es ist und wann ich damit rechnen kann? Wenn es nicht mehr kommt, dann möchte ich "
    "mein Geld zurück haben, denn so kann das nicht weiter gehen.",
    "French": "Bonjour, je vous écris parce que je n'ai pas encore reçu le colis que j'ai commandé il y a trois "
    "semaines. Est-ce que vous pouvez me dire où il est et quand il sera chez moi ? Si vous ne le trouvez pas, je "
    "voudrais avoir mon argent avec une lettre de votre part, car tout cela est trop long pour nous.",
    "Spanish": "Buenos días, les escribo porque todavía no ha llegado el paquete que pedí hace tres semanas. ¿Me "
    "pueden decir dónde está y cuándo va a llegar a mi casa? Si no lo encuentran, quiero que me devuelvan el dinero, "
    "porque esto no puede ser así y ya no tengo más tiempo para esperar.",
    "Italian": "Buongiorno, vi scrivo perché non ho ancora ricevuto il pacco che ho ordinato tre settimane fa. Mi "
    "potete dire dove si trova e quando sarà a casa mia? Se non lo trovate vorrei avere i miei soldi, perché non è "
    "possibile che una cosa come questa sia per noi tanto lunga.",
    "Dutch": "Goedemorgen, ik heb drie weken geleden een pakket besteld en het is nog steeds niet bij mij aangekomen. "
    "Kunt u mij zeggen waar het is en wanneer ik het zal hebben? Als het niet meer komt dan wil ik mijn geld terug, "
    "want dit kan zo niet langer, en ik heb er ook geen tijd meer voor.",
    "Portuguese": "Bom dia, escrevo porque ainda não recebi a encomenda que fiz há três semanas. Podem dizer onde "
    "está e quando vai chegar a minha casa? Se não a encontram, quero o meu dinheiro, porque isto não pode ser assim "
    "e eu já não tenho mais tempo para esperar por uma coisa que é tão pequena.",
    "Swedish": "Hej, jag beställde ett paket för tre veckor sedan och det har inte kommit fram till mig än. Kan ni "
    "säga var det är och när jag kan få det? Om det inte kommer så vill jag ha mina pengar, för så här kan det inte "
    "vara och jag har inte mer tid att vänta på det.",
    "Polish": "Dzień dobry, piszę, ponieważ paczka, którą zamówiłem trzy tygodnie temu, jeszcze do mnie nie przyszła. "
    "Czy mogą mi państwo powiedzieć, gdzie ona jest i kiedy będzie u mnie? Jeżeli już nie przyjdzie, to chcę, aby "
    "oddali mi państwo pieniądze, bo tak dalej być nie może i nie mam już na to czasu.",
    "Turkish": "Merhaba, üç hafta önce bir paket sipariş ettim ve o hâlâ bana gelmedi. Bana nerede olduğunu ve ne "
    "zaman geleceğini söyler misiniz? Eğer daha gelmeyecek ise ben paramı geri istiyorum, çünkü bu böyle devam "
    "edemez ve benim için çok uzun oldu. Bu kadar şey için daha fazla zaman yok, ama sizi de anlıyorum.",
    "Russian": "Здравствуйте, три недели назад я заказал посылку, и она до сих пор не пришла. Скажите, где она?",
    "Greek": "Καλημέρα, πριν από τρεις εβδομάδες παρήγγειλα ένα δέμα και δεν έχει έρθει ακόμα. Πού είναι;",
    "Chinese": "您好，我三个星期以前订了一个包裹，到现在还没有收到。"
    "请问包裹在哪里，什么时候能送到我家？如果找不到，请把钱退给我。",
    "Japanese": "こんにちは。三週間前に荷物を注文しましたが、まだ届いていません。"
    "今どこにありますか。いつ届くか教えてください。",
    "Korean": "안녕하세요, 삼 주 전에 소포를 주문했는데 아직 도착하지 않았습니다. "
    "지금 어디에 있는지 알려 주세요. 언제 받을 수 있습니까?",
    "Arabic script": "مرحبا، طلبت طردا قبل ثلاثة أسابيع ولم يصل حتى الآن. هل يمكنكم أن تخبروني أين هو ومتى يصل؟",
    "Hebrew": "שלום, הזמנתי חבילה לפני שלושה שבועות והיא עדיין לא הגיעה אליי. תוכלו לומר לי איפה היא ומתי תגיע?",
}
"""Made-up letters about a parcel."""

ENGLISH = (
    "USR: hi my pkg never came lol. order 4412. can u check pls. its been 3 weeks and i want my money back now or else "
    "SYS: sure, what is your name and your account please? USR: lena fischer, lfischer88, thx for the help anyway"
)

LOGS = "\n".join(
    f"2026-03-0{day}T10:00:0{day}Z host-{day} sshd[{day}311]: Accepted publickey for deploy from 10.0.0.{day} port "
    f"5{day}122 ssh2: RSA SHA256:abcdef{day}; GET /api/v1/users/{day}/orders HTTP/1.1 200 {day}52 curl"
    for day in range(1, 9)
)


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_in_another_language_is_distinguished_from_english(name: str) -> None:
    language = other_language(TEXTS[name], "en")
    assert language is not None
    assert language.name == name


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_in_the_language_of_the_pipeline_is_right(name: str) -> None:
    codes = {language.name: code for by_code in (LANGUAGES, *SCRIPTS.values()) for code, language in by_code.items()}
    assert other_language(TEXTS[name], codes[name]) is None


def test_english_is_noticed_by_a_german_pipeline() -> None:
    assert other_language(ENGLISH, "de") == LANGUAGES["en"]


@pytest.mark.parametrize("text", [ENGLISH, LOGS, "", "12 34 56 " * 200, "OK " * 100, "def f(x): return x\n" * 50])
def test_chats_logs_and_code_are_not_taken_for_another_language(text: str) -> None:
    assert other_language(text, "en") is None


@pytest.mark.parametrize("corpus", ["abcd/valid.txt", "wikitext-2-raw/valid.txt", "wnut17/emerging.dev.conll"])
def test_english_corpora_are_not_taken_for_another_language(corpus: str, shared_data: Path) -> None:
    text = (shared_data / corpus).read_text(encoding="utf-8")
    if corpus.endswith("conll"):
        text = " ".join(line.split("\t")[0] for line in text.splitlines())
    for start in range(0, len(text), SAMPLE):
        assert other_language(text[start : start + SAMPLE], "en") is None


def test_synthetic_records_with_names_of_many_countries_are_english(shared_data: Path) -> None:
    records = json.loads((shared_data / "presidio-research" / "synth_dataset_v2.json").read_text(encoding="utf-8"))
    text = " ".join(record["full_text"] for record in records)
    for start in range(0, len(text), SAMPLE):
        assert other_language(text[start : start + SAMPLE], "en") is None


@pytest.mark.parametrize("records", [1, 7, 400])
def test_records_pass_as_they_are_and_the_warning_comes_once(records: int) -> None:
    corpus = [Record(id=str(number), text=TEXTS["German"]) for number in range(records)]
    warned: list[Language] = []
    assert list(watched_language(iter(corpus), "en", warned.append)) == corpus
    assert warned == [LANGUAGES["de"]]


def test_what_comes_after_the_sample_does_not_matter() -> None:
    english = Record(id="0", text=ENGLISH * (SAMPLE // len(ENGLISH) + 1))
    warned: list[Language] = []
    list(watched_language([english, *(Record(id="1", text=TEXTS["German"]) for _ in range(500))], "en", warned.append))
    assert warned == []


def test_every_pipeline_is_that_of_its_language() -> None:
    for code, language in [item for by_code in (LANGUAGES, *SCRIPTS.values()) for item in by_code.items()]:
        assert language.pipeline is None or Path(language.pipeline).name.startswith(f"{code}_core_")


@pytest.mark.one_in(7)
@pytest.mark.parametrize("code", LANGUAGES)
def test_stop_words_are_those_that_spacy_gives_a_language(code: str) -> None:
    assert stop_words(code) == {word.casefold() for word in import_module(f"spacy.lang.{code}.stop_words").STOP_WORDS}


@pytest.mark.ci
def test_no_other_language_is_imported() -> None:
    """French's package compiles an expression for seconds when it is imported, in every process that reads a corpus."""
    program = (
        "import sys; from atdp_cli.detection.language import LANGUAGES, other_language, stop_words;"
        f"assert other_language({TEXTS['French']!r}, 'en').name == 'French';"
        "sys.exit([code for code in LANGUAGES if f'spacy.lang.{code}' in sys.modules and code != 'en'] or None)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("name", ["Arabic script", "Turkish", "Hebrew"])
def test_the_missed_names_of_a_corpus_are_said_by_one_sentence(name: str) -> None:
    """The warning before detection and the owner's verdict say it in the same words."""
    pipeline = spacy.blank("en")
    records = [Record(id=str(number), text=TEXTS[name]) for number in range(9)]
    sentence = f"The text looks like {name}, and the pipeline reads English: most names are missed."
    assert missed_names(records, pipeline) == sentence
    assert missed_names([Record(id="1", text=ENGLISH)], pipeline) is None
    assert missed_names(records, spacy.blank("xx")) is None
