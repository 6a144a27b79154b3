"""The plugin in sessions of its own: marks, selection, exit status, summary, reports."""

import json
from xml.etree import ElementTree

import pytest

from pytest_decodeperf.exit_status import NO_DECISION, NOTHING_MEASURED
from pytest_decodeperf.marks import ALL_MARKS

pytestmark = pytest.mark.usefixtures("profiles")

JUDGED = """
    import pytest
    from pytest_decodeperf.invariants.finding import Finding, Outcome

    def finding(outcome):
        return Finding(invariant="some_property", outcome=Outcome[outcome], expected="1 thing",
                       seen="2 things", at=("step 3: 2",), do="look at step 3", value="2",
                       baseline="1")

    {tests}
"""


def judged(pytester, tests):
    pytester.makepyfile(JUDGED.format(tests=tests))


ONE_OF = """
    def test_it(launch, judge):
        judge(finding({outcome!r}))
"""


def test_every_mark_is_registered(pytester):
    result = pytester.runpytest("--markers")
    for mark in ALL_MARKS:
        result.stdout.fnmatch_lines([f"@pytest.mark.{mark}: *"])


def test_a_test_is_made_for_each_launch_and_carries_its_marks(pytester):
    judged(pytester, ONE_OF.format(outcome="OK"))
    result = pytester.runpytest("-v", "-m", "sm75")
    result.stdout.fnmatch_lines(["*test_it[[]elsewhere.sm75[]] PASSED*"])
    result.assert_outcomes(passed=1, deselected=1)


def test_one_test_a_concurrency(pytester):
    judged(
        pytester,
        """
    def test_it(launch, concurrency, judge):
        judge(finding("OK"))
    """,
    )
    result = pytester.runpytest("-v", "-m", "cpu")
    result.stdout.fnmatch_lines(["*here.cpu-c1*PASSED*", "*here.cpu-c4*PASSED*"])


def test_tests_of_a_launch_run_one_after_the_other(pytester):
    judged(
        pytester,
        """
    def test_plain_first(): pass
    def test_a(launch): pass
    def test_plain_between(): pass
    def test_b(launch): pass
    """,
    )
    result = pytester.runpytest("-v")
    result.stdout.fnmatch_lines(
        [
            "*test_plain_first*",
            "*test_a[[]here.cpu[]]*",
            "*test_b[[]here.cpu[]]*",
            "*test_plain_between*",
            "*test_a[[]elsewhere.sm75[]]*",
            "*test_b[[]elsewhere.sm75[]]*",
        ]
    )


def test_a_failure_is_a_failed_test_with_its_text_and_no_traceback(pytester):
    judged(pytester, ONE_OF.format(outcome="FAILED"))
    result = pytester.runpytest("-m", "cpu", "--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "some_property: FAILED",
            "  expected: 1 thing",
            "  seen:     2 things",
            "  at:       step 3: 2",
            "  do:       look at step 3",
            "*launch*property*value*baseline*verdict*",
            "*here.cpu*some_property*2*1*FAILED*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    suite = ElementTree.parse(pytester.path / "junit.xml").getroot().find("testsuite")
    assert suite.get("failures") == "1"
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert json.loads(properties["decodeperf_finding"])["finding"]["outcome"] == "FAILED"


def test_last_failed_and_exitfirst_work(pytester):
    judged(
        pytester,
        """
    def test_good(launch, judge):
        judge(finding("OK"))
    def test_bad(launch, judge):
        judge(finding("REGRESSED"))
    def test_bad_too(launch, judge):
        judge(finding("INVALID"))
    """,
    )
    assert pytester.runpytest("-m", "cpu").ret == 1
    pytester.runpytest("-m", "cpu", "--lf").assert_outcomes(failed=2)
    pytester.runpytest("-m", "cpu", "-x").assert_outcomes(passed=1, failed=1)


def test_no_decision_is_neither_pass_nor_failure(pytester):
    judged(pytester, ONE_OF.format(outcome="NO_DECISION"))
    result = pytester.runpytest("-m", "cpu", "-v")
    assert result.ret == NO_DECISION
    result.stdout.fnmatch_lines(
        [
            "*test_it*NO DECISION*",
            "here.cpu: some_property: NO_DECISION",
            "  do:       look at step 3",
            "NO DECISION on 1 properties*",
            "*1 undecided*",
        ]
    )


def test_a_failure_wins_over_no_decision(pytester):
    judged(
        pytester,
        """
    @pytest.mark.parametrize("word", ["NO_DECISION", "FAILED"])
    def test_it(launch, judge, word):
        judge(finding(word))
    """,
    )
    assert pytester.runpytest("-m", "cpu").ret == pytest.ExitCode.TESTS_FAILED


def test_nothing_measured_is_never_green(pytester):
    judged(pytester, "def test_it(engine): raise SystemError('must not be reached')")
    result = pytester.runpytest("-m", "sm75")
    assert result.ret == NOTHING_MEASURED
    result.stdout.fnmatch_lines(
        ["NOTHING MEASURED: elsewhere.sm75 needs sm75 No Such Card; found *CPU*"]
    )


def test_a_mark_that_no_launch_carries_measures_nothing(pytester):
    judged(pytester, ONE_OF.format(outcome="OK"))
    result = pytester.runpytest("-m", "sm103")
    assert result.ret == NOTHING_MEASURED
    result.stdout.fnmatch_lines(
        ["NOTHING MEASURED: no test was selected; the launches carry cpu, sm75; found *"]
    )


def test_require_turns_the_skip_into_a_failure(pytester):
    judged(pytester, "def test_it(engine): pass")
    result = pytester.runpytest("-m", "sm75", "--decodeperf-require")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*not measured: elsewhere.sm75: needs sm75*found*"])


def test_without_launches_the_fixture_says_how_to_name_one(pytester):
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nstrict = true\n")
    pytester.makepyfile("def test_it(launch): pass")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*do:*name one with --decodeperf-profile*"])


def test_other_peoples_sessions_are_left_alone(pytester):
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\nstrict = true\n")
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest()
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*decodeperf:*")
    assert pytester.runpytest("-k", "nothing").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_fixture_of_the_users_with_our_name_stays_theirs(pytester):
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def launch():
            return "rocket"

        def test_theirs(launch):
            assert launch == "rocket"

        @pytest.mark.parametrize("launch, counter", [(1, 2)])
        def test_parametrized(launch, counter):
            assert (launch, counter) == (1, 2)
        """
    )
    pytester.runpytest("-v").assert_outcomes(passed=2)


@pytest.mark.parametrize("outcome", ["OK", "FAILED", "NO_DECISION"])
def test_the_same_with_xdist(pytester, outcome):
    judged(pytester, ONE_OF.format(outcome=outcome))
    plain = pytester.runpytest("-m", "cpu")
    spread = pytester.runpytest("-m", "cpu", "-n", "2")
    assert plain.ret == spread.ret
    spread.stdout.fnmatch_lines([f"here.cpu*some_property*2*1*{outcome}"])


def test_tests_of_a_launch_share_a_worker(pytester):
    judged(
        pytester,
        """
    @pytest.mark.parametrize("number", range(6))
    def test_it(launch, number, worker_id):
        open(f"{launch.name}.{worker_id}.ran", "w").close()
    """,
    )
    pytester.runpytest("-n", "2").assert_outcomes(passed=12)
    ran = sorted(path.name.split(".gw")[0] for path in pytester.path.glob("*.ran"))
    assert ran == ["elsewhere.sm75", "here.cpu"]
