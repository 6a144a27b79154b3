"""The pytest plugin: options, marks, parametrisation, exit status. Holds no measuring code."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_decodeperf import exit_status, fixtures, marks
from pytest_decodeperf.options import add_options, read_options, separate_update_mode
from pytest_decodeperf.parametrization import group_by_launch, parametrize, without_empty
from pytest_decodeperf.report import summary
from pytest_decodeperf.report.results import is_undecided
from pytest_decodeperf.session import STATE, SessionState, load_launches

# Fixtures of the plugin; named here so that pytest finds them.
launch = fixtures.launch
concurrency = fixtures.concurrency
counter = fixtures.counter
engine = fixtures.engine
decode = fixtures.decode
census = fixtures.census
judge = fixtures.judge
budget = fixtures.budget
baseline = fixtures.baseline


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    """Keep a bare ``--update-baselines`` from taking the next argument as its mode."""
    separate_update_mode(args)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the plugin's options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marks and read the launches."""
    for name, meaning in marks.ALL_MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    options = read_options(config)
    state = SessionState(options=options, launches=load_launches(options))
    config.stash[STATE] = state
    config.pluginmanager.register(state.results, "decodeperf-results")


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Keep the tests of one launch on one worker."""
    from pytest_decodeperf.xdist_groups import scheduler

    return scheduler(config, log)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """One line: card, vLLM, launches, baseline key."""
    state = config.stash[STATE]
    if not state.launches or state.options.traces or config.option.collectonly:
        return []
    from pytest_decodeperf.baseline.key import hardware_text

    return [summary.header_line(state.launches, state.facts, hardware_text(state.facts))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each launch, concurrency and counter that it asks for."""
    parametrize(metafunc, metafunc.config.stash[STATE])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests of one launch one after the other: one engine is up at a time."""
    empty = without_empty(items)
    if empty:
        items[:] = [item for item in items if item not in empty]
        config.hook.pytest_deselected(items=empty)
    group_by_launch(items)


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    """Give a test that could not decide a word of its own: neither passed nor skipped."""
    if isinstance(report, pytest.TestReport) and is_undecided(report):
        return "undecided", "?", "NO DECISION"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Take the engine down, store what was asked for, and refuse to be green by silence."""
    state = session.config.stash[STATE]
    state.shut_engine_down()
    if hasattr(session.config, "workerinput"):
        return  # a worker's results travel with its reports; only the controller writes
    interrupted = exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
    state.store_baselines(interrupted=interrupted)
    if session.config.option.collectonly:
        return
    state.exitstatus = exit_status.judge(
        exitstatus,
        state.results,
        has_launches=bool(state.launches),
        update_failed=state.update_failed,
    )
    session.exitstatus = state.exitstatus


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table: a line a property."""
    state = terminalreporter.config.stash[STATE]
    nothing_measured = state.exitstatus == exit_status.NOTHING_MEASURED
    shown = (state.results.rows, state.results.notes, state.update_lines, nothing_measured)
    if not any(shown):
        return
    closing = summary.closing_lines(
        state.results, state.launches, state.facts, nothing_measured=nothing_measured
    )
    summary.write(
        terminalreporter,
        results=state.results,
        closing=closing,
        update_lines=state.update_lines,
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the engine down if the session ended before its own end (Ctrl-C at collection)."""
    state = config.stash.get(STATE, None)
    if state is not None:
        state.close()
