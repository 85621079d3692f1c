"""Ray: the bytes of a local run, in order, also where workers are killed; skipped where it is not installed."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

from atdp_cli.audit.request import AuditRequest
from atdp_cli.audit.results import AnyAudit, Audit, UnfinishedAudit
from atdp_cli.audit.run import audit_canary
from atdp_cli.corpus.record import read_records
from atdp_cli.detection.detect import Detection
from atdp_cli.detection.detector import Detector
from atdp_cli.detection.results import CorpusCounts
from atdp_cli.detection.run import CorpusSource, run_over
from atdp_cli.detection.run_on import RETRIES, THIS_PROCESS, Executor, Ray, connected, require_ray, submit_to
from atdp_cli.errors import InputError, RunError, UsageError
from atdp_cli.events import Event, Notify, RecordsRead, ignore
from tests.rayworkers import kill_a_busy_worker

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")


@pytest.mark.deep
@needs_ray
def test_a_killed_worker_costs_nothing_but_time(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"{number} {line}\n" for number, line in enumerate(5 * lines)))
    killed: list[int] = []
    # In a thread, as no worker is busy while this process waits with all that it has submitted done.
    killer = Thread(target=lambda: killed.append(kill_a_busy_worker()))

    def kill(event: Event) -> None:
        if isinstance(event, RecordsRead) and event.done == 100:
            killer.start()

    def found(executor: Executor, notify: Notify) -> list[Detection]:
        detector = Detector(executor=executor)
        return list(run_over(read_records(path), CorpusSource(path=path), detector, notify, CorpusCounts()))

    assert found(Ray(processors=2), kill) == found(THIS_PROCESS, ignore)
    killer.join()
    assert len(killed) == 1


def begin_work(settings: str) -> Callable[[int], int]:
    def work(item: int) -> int:
        if item == 2:
            raise InputError(f"{settings} {item}.", "Do otherwise.")
        if item == 3:
            os._exit(1)
        return item

    return work


@pytest.mark.deep
@needs_ray
def test_errors_come_back_as_what_they_are_and_nothing_stays() -> None:
    before = dict(os.environ)
    with connected(Ray()) as library:
        folder = Path(library._private.worker._global_node.get_temp_dir_path()).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        submit = submit_to(library, begin_work, "Item")
        first, second, third = (submit(item) for item in (1, 2, 3))
        assert first() == 1
        with pytest.raises(InputError, match=r"Item 2\. Do otherwise\."):
            second()
        with pytest.raises(RunError, match=rf"before its work was done, {1 + RETRIES} times \(WorkerCrashedError\)"):
            third()
        with pytest.raises(UsageError, match=r"Give a smaller run\.threads"):
            submit_to(library, begin_work, "", processors=10_000)
    assert not folder.exists()
    assert dict(os.environ) == before


@pytest.mark.deep
@needs_ray
def test_models_on_ray_are_audited_as_here(
    checkpoint_folder: Path, fixed_manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkpoint_folder.parent)
    name = Path(checkpoint_folder.name)
    models = (name, Path("nowhere"), checkpoint_folder)

    def audited(run_on: str) -> tuple[AnyAudit, ...]:
        request = AuditRequest(models=models, manifest=fixed_manifest, reference=name, run_on=run_on)
        actual = audit_canary(request).models
        assert [type(audit) for audit in actual] == [Audit, UnfinishedAudit, Audit]
        return actual

    assert audited("ray") == audited("local")


@needs_ray
def test_where_nothing_listens_is_no_cluster() -> None:
    ray = Ray(address="127.0.0.1:1")
    with pytest.raises(RunError, match=r"No cluster of Ray answers at 127\.0\.0\.1:1\."), connected(ray):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.delitem(__import__("sys").modules, "ray", raising=False)
    with pytest.raises(UsageError, match=r"Install the extra: pip install 'atdp\[ray\]'\."):
        require_ray()
    (tmp_path / "ray").mkdir()
    with pytest.raises(UsageError):
        require_ray()


@pytest.mark.parametrize("address", ["ray://host:10001", "host", "host:", "local"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT or with ray:auto"):
        Ray(address=address)
