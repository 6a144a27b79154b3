"""The baseline store: what is kept, what is refused, what survives a bad day."""

import dataclasses
import json
import multiprocessing
import os

import pytest

from pytest_decodeperf.baseline import document, store
from pytest_decodeperf.baseline.document import BaselineError, read_document
from pytest_decodeperf.baseline.key import BaselineKey, differing_fields
from pytest_decodeperf.baseline.rounding import rounded
from pytest_decodeperf.baseline.sample import Provenance, Sample
from pytest_decodeperf.baseline.store import UpdateMode, compare, find, nearest, update
from pytest_decodeperf.verdict.verdict import Word

KEY = BaselineKey(
    launch="tiny.h200",
    launch_digest="abc",
    device="NVIDIA H200",
    compute_capability="9.0",
    memory_gib=140,
    power_limit_w=700,
    num_devices=1,
    driver_major="580",
    cuda_major="13",
    platform="native",
    virtualised=True,
    confidential=False,
    runner="V2",
    cudagraph_mode="FULL_AND_PIECEWISE",
    async_scheduling=True,
    num_speculative_tokens=3,
    variables=(),
    prompt_set="p1",
)
ENTRY = "time_per_step c=1"


def sample(value, concurrency=1, metric="time_per_step", tolerance=0.03):
    return Sample(
        metric=metric,
        concurrency=concurrency,
        value=value,
        unit="ms",
        higher_is_better=False,
        tolerance=tolerance,
    )


def provenance(second=0):
    return Provenance(
        date=f"2026-12-01T12:00:{second:02d}Z", commit="c0ffee", vllm_version="0.25.1"
    )


def stored(folder, *values, mode=UpdateMode.MISSING, **named):
    for second, value in enumerate(values):
        report = update(
            folder, KEY, [sample(value)], mode=mode, provenance=provenance(second), **named
        )
    return report


def boots(folder):
    return find(folder, KEY).entries[ENTRY].boots


def test_nothing_is_stored_at_first(tmp_path):
    assert find(tmp_path, KEY) is None
    assert nearest(tmp_path, KEY) == ()
    assert nearest(tmp_path / "no such folder", KEY) == ()


def test_missing_stores_boots_until_an_entry_can_judge(tmp_path):
    report = stored(tmp_path, 2.79, 2.80, 2.78)
    assert report.lines == (f"{ENTRY}: 2.795 ms (2 boots) -> 2.79 ms (3 boots)",)
    report = stored(tmp_path, 2.79, 2.80, 2.81)
    assert len(boots(tmp_path)) == 5
    assert report.lines == (), "the sixth boot is not stored"


def test_the_file_reads_like_a_list_of_values(tmp_path):
    stored(tmp_path, 2.79, 2.80)
    text = (tmp_path / KEY.file_name).read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
    assert '   "2026-12-01T12:00:01Z": 2.8\n' in text
    assert KEY.file_name.startswith("tiny.h200.nvidia-h200.")


def test_a_small_update_is_a_small_diff(tmp_path):
    stored(tmp_path, 2.79, 2.80)
    before = (tmp_path / KEY.file_name).read_text(encoding="utf-8").splitlines()
    update(tmp_path, KEY, [sample(2.81)], mode=UpdateMode.MISSING, provenance=provenance(9))
    after = (tmp_path / KEY.file_name).read_text(encoding="utf-8").splitlines()
    gone = [line for line in before if line not in after]
    assert len(gone) <= 3, gone  # anchor, its count, and a comma


def test_other_entries_are_kept(tmp_path):
    both = [sample(2.79), sample(3.10, concurrency=4)]
    update(tmp_path, KEY, both, mode=UpdateMode.ALL, provenance=provenance())
    update(tmp_path, KEY, [sample(2.79)], mode=UpdateMode.ALL, provenance=provenance(1))
    assert set(find(tmp_path, KEY).entries) == {ENTRY, "time_per_step c=4"}


def test_all_lets_an_agreeing_boot_join_and_drops_the_oldest(tmp_path):
    stored(tmp_path, *[2.79 + 0.001 * (index % 3) for index in range(12)], mode=UpdateMode.ALL)
    document_ = find(tmp_path, KEY)
    assert len(boots(tmp_path)) == store.MAX_STORED_BOOTS
    assert min(document_.boots) == "2026-12-01T12:00:02Z", "boots that no entry uses are dropped"


def test_all_starts_anew_with_a_shifted_boot_and_keeps_the_old_in_history(tmp_path):
    stored(tmp_path, 2.79, 2.80, 2.78, 2.79, 2.80)
    report = update(
        tmp_path,
        KEY,
        [sample(3.5)],
        mode=UpdateMode.ALL,
        provenance=provenance(9),
        reason="a new sampler",
    )
    entry = find(tmp_path, KEY).entries[ENTRY]
    assert (entry.boots, entry.anchor) == ((3.5,), 3.5)
    (old,) = entry.history
    assert (old.reason, old.num_boots, old.mean) == ("a new sampler", 5, pytest.approx(2.792))
    assert report.lines == (f"{ENTRY}: 2.792 ms (5 boots) -> 3.5 ms (1 boots)",)


def test_a_loss_without_a_reason_leaves_the_anchor(tmp_path):
    stored(tmp_path, 2.79, 2.80, 2.78, 2.79, 2.80)
    stored(tmp_path, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5, mode=UpdateMode.ALL)
    entry = find(tmp_path, KEY).entries[ENTRY]
    assert entry.anchor == pytest.approx(2.792)
    verdict = compare(entry, 3.5, tolerance=0.03)
    assert verdict.word is Word.REGRESSED
    assert "added up to -25.4% against the anchor 2.792 ms" in verdict.reason


def test_slow_losses_add_up_against_the_anchor(tmp_path):
    """Each boot agrees with those before it; together they lost more than the tolerance."""
    stored(tmp_path, 2.80, 2.79, 2.81, 2.80, 2.80)
    entry = find(tmp_path, KEY).entries[ENTRY]
    value, second = 2.80, 10
    while compare(entry, value, tolerance=0.03).word in (Word.OK, Word.WORSE_WITHIN):
        update(tmp_path, KEY, [sample(value)], mode=UpdateMode.ALL, provenance=provenance(second))
        entry = find(tmp_path, KEY).entries[ENTRY]
        value, second = value + 0.006, second + 1
        assert second < 60, "the drift was never seen"
    assert "against the anchor" in compare(entry, value, tolerance=0.03).reason


def test_boots_that_scatter_beyond_the_limit_are_refused_whole(tmp_path):
    stored(tmp_path, 2.0, 3.0)
    before = (tmp_path / KEY.file_name).read_bytes()
    with pytest.raises(ValueError, match=r"scatter by at most 15\.0%") as refused:
        update(
            tmp_path,
            KEY,
            [sample(2.1), sample(5.0, concurrency=4)],
            mode=UpdateMode.MISSING,
            provenance=provenance(30),
        )
    assert "seen:     23.3% over 3 boots: 2, 3, 2.1 ms" in str(refused.value)
    assert "max_spread" in str(refused.value)
    assert (tmp_path / KEY.file_name).read_bytes() == before


def test_counts_may_differ_as_they_like(tmp_path):
    for second, value in enumerate((0, 0, 8)):
        count = sample(value, metric="pageable_copies", tolerance=None)
        update(tmp_path, KEY, [count], mode=UpdateMode.MISSING, provenance=provenance(second))
    assert find(tmp_path, KEY).entries["pageable_copies c=1"].boots == (0, 0, 8)


def test_the_files_own_limit_decides(tmp_path):
    stored(tmp_path, 2.0, 3.0)
    path = tmp_path / KEY.file_name
    path.write_text(path.read_text().replace('"max_spread": 0.15', '"max_spread": 0.3'))
    update(tmp_path, KEY, [sample(2.1)], mode=UpdateMode.MISSING, provenance=provenance(30))
    assert boots(tmp_path) == (2.0, 3.0, 2.1)
    assert find(tmp_path, KEY).entries[ENTRY].max_spread == 0.3


def test_a_profile_that_accepts_half_accepts_boots_that_scatter_so(tmp_path):
    values = (2.0, 3.0, 4.0, 2.5)
    for second, value in enumerate(values):
        update(
            tmp_path,
            KEY,
            [sample(value, tolerance=0.5)],
            mode=UpdateMode.MISSING,
            provenance=provenance(second),
        )
    assert boots(tmp_path) == values
    with pytest.raises(ValueError, match=r"scatter by at most 15\.0%"):
        stored(tmp_path, 5.0)


def test_improved_stores_only_a_shown_gain(tmp_path):
    stored(tmp_path, 2.79, 2.80, 2.78, 2.79, 2.80)
    for value, expected in ((2.79, 5), (3.2, 5), (2.5, 1)):
        stored(tmp_path, value, mode=UpdateMode.IMPROVED)
        assert len(boots(tmp_path)) == expected
    assert boots(tmp_path) == (2.5,)


def test_improved_does_not_make_a_new_entry(tmp_path):
    assert stored(tmp_path, 2.79, mode=UpdateMode.IMPROVED).lines == ()
    assert find(tmp_path, KEY) is None


def test_a_unit_never_changes_silently(tmp_path):
    stored(tmp_path, 2.79)
    other = dataclasses.replace(sample(2790.0), unit="us")
    with pytest.raises(ValueError, match="stored in ms, measured in us"):
        update(tmp_path, KEY, [other], mode=UpdateMode.ALL, provenance=provenance(1))


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("", "an empty file"),
        ("  \n", "an empty file"),
        ('{"schema": "decode', "Input data was truncated"),
        ("[1, 2", "Expected `object`, got `array`"),
        ("not json", "malformed"),
        ("{}", "missing required field"),
        ('{"schema": 3}', "Expected `str`, got `int` - at `$.schema`"),
    ],
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path, content, seen):
    path = tmp_path / KEY.file_name
    path.write_text(content, encoding="utf-8")
    for attempt in (
        lambda: find(tmp_path, KEY),
        lambda: stored(tmp_path, 2.79, mode=UpdateMode.ALL),
    ):
        with pytest.raises(BaselineError) as raised:
            attempt()
        assert seen in str(raised.value)
        assert "never overwritten" in str(raised.value)
    assert path.read_text(encoding="utf-8") == content


def test_another_schema_and_a_boot_that_is_not_described(tmp_path):
    stored(tmp_path, 2.79)
    path = tmp_path / KEY.file_name
    good = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**good, "schema": "decodeperf-baseline/9"}), encoding="utf-8")
    with pytest.raises(BaselineError, match="schema 'decodeperf-baseline/9'"):
        find(tmp_path, KEY)
    path.write_text(json.dumps({**good, "boots": {}}), encoding="utf-8")
    with pytest.raises(BaselineError, match=r"boots .* that the file does not describe"):
        find(tmp_path, KEY)


def test_a_folder_where_the_file_should_be(tmp_path):
    (tmp_path / KEY.file_name).mkdir()
    with pytest.raises(BaselineError, match="IsADirectoryError"):
        find(tmp_path, KEY)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    stored(tmp_path, 2.79)
    before = (tmp_path / KEY.file_name).read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(document.os, "fsync", full)
    with pytest.raises(BaselineError, match="No space left on device"):
        stored(tmp_path, 2.80)
    assert (tmp_path / KEY.file_name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", KEY.file_name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_rights(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(BaselineError, match="PermissionError"):
        stored(tmp_path / "deeper", 2.79)


def update_many(folder, concurrency):
    for second in range(20):
        update(
            folder,
            KEY,
            [sample(2.79, concurrency=concurrency)],
            mode=UpdateMode.ALL,
            provenance=provenance(second),
        )


def test_two_updates_at_once_lose_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=update_many, args=(tmp_path, concurrency)) for concurrency in (1, 4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    entries = read_document(tmp_path / KEY.file_name).entries
    assert {name: len(entry.boots) for name, entry in entries.items()} == {
        ENTRY: store.MAX_STORED_BOOTS,
        "time_per_step c=4": store.MAX_STORED_BOOTS,
    }


def test_the_closest_baseline_names_what_differs(tmp_path):
    stored(tmp_path, 2.79)
    here = dataclasses.replace(KEY, driver_major="590")
    assert find(tmp_path, here) is None
    assert nearest(tmp_path, here) == ("driver_major: stored 580, here 590",)
    elsewhere = dataclasses.replace(KEY, launch="another")
    assert nearest(tmp_path, elsewhere) == ()


def test_confidential_computing_is_another_machine():
    """Case B11 (vllm-project/vllm#57680): 3.3 times slower with CC on, and no regression."""
    here = dataclasses.replace(KEY, confidential=True)
    assert differing_fields(KEY, here) == ("confidential: stored False, here True",)
    assert here.file_name != KEY.file_name


def test_a_variable_of_the_process_is_another_run():
    """Case B06 (vllm-project/vllm#54677): one opt-out variable looked like a regression."""
    here = dataclasses.replace(KEY, variables=("VLLM_USE_BREAKABLE_CUDAGRAPH=0",))
    assert differing_fields(KEY, here) == (
        "variables: stored none, here VLLM_USE_BREAKABLE_CUDAGRAPH=0",
    )


@pytest.mark.parametrize(
    ("value", "others", "expected"),
    [
        (2.7912345678, (), 2.7912),
        (2.7912345678, (2.79, 2.80), 2.7912),
        (2.7912345678, (2.0, 3.5), 2.79),
        (123456.789, (), 123460.0),
        (0.0, (), 0.0),
    ],
)
def test_digits_follow_the_spread(value, others, expected):
    assert rounded(value, others) == expected
