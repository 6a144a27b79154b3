"""The closed loop on a stand-in engine: what makes a window, and what makes it unusable."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_decodeperf.census.decode import RuntimeMode
from pytest_decodeperf.census.resolved import Resolved, RunnerKind
from pytest_decodeperf.engine import closed_loop
from pytest_decodeperf.engine.closed_loop import InvalidWindowError, record_window
from pytest_decodeperf.engine.engine import Engine
from pytest_decodeperf.launch.expectation import DecodePlan, Expectation
from pytest_decodeperf.launch.record import Hardware, Launch

LAUNCH = Launch(
    name="x",
    origin=Path("x.toml"),
    model="m",
    flags=(),
    environment={},
    hardware=Hardware(marks=("cpu",)),
    expectation=Expectation(),
    plan=DecodePlan(),
)


class Scheduler:
    def update_from_output(self, scheduled, model_output):
        stats = SimpleNamespace(
            spec_decoding_stats=SimpleNamespace(
                num_drafts=len(scheduled.num_scheduled_tokens),
                num_draft_tokens=3,
                num_accepted_tokens=1,
                num_accepted_tokens_per_pos=[1, 0, 0],
            )
        )
        return {0: SimpleNamespace(scheduler_stats=stats)}


class Runner:
    def _determine_batch_execution_and_padding(self, num_tokens):
        return SimpleNamespace(name="FULL"), SimpleNamespace(num_tokens=num_tokens + 1)


class StandInEngine:
    """One prefill step for all requests, then one token a step; ``spoil`` breaks a given step."""

    def __init__(self):
        self.scheduler, self.runner = Scheduler(), Runner()
        self.engine_core = SimpleNamespace(
            engine_core=SimpleNamespace(
                scheduler=self.scheduler,
                model_executor=SimpleNamespace(
                    driver_worker=SimpleNamespace(worker=SimpleNamespace(model_runner=self.runner))
                ),
            )
        )
        self.tokens, self.new, self.num_steps, self.aborted = {}, set(), 0, []
        self.spoil = {}

    def add_request(self, req_id):
        self.tokens[req_id] = []
        self.new.add(req_id)

    def abort_request(self, req_ids):
        self.aborted += req_ids
        for req_id in req_ids:
            self.tokens.pop(req_id, None)

    def has_unfinished_requests(self):
        return bool(self.tokens)

    def step(self):
        self.num_steps += 1
        running = dict(self.tokens)
        spoil = self.spoil.get(self.num_steps)
        if spoil is not None:
            spoil(self, running)
        if not running:
            return []
        scheduled = SimpleNamespace(
            num_scheduled_tokens={req_id: 64 if req_id in self.new else 4 for req_id in running},
            scheduled_new_reqs=[SimpleNamespace(req_id=req_id) for req_id in self.new],
            scheduled_spec_decode_tokens={req_id: [0, 0, 0] for req_id in running},
        )
        self.new.clear()
        self.runner._determine_batch_execution_and_padding(4 * len(running))
        for ids in running.values():
            ids.append(7)
        output = SimpleNamespace(sampled_token_ids=[[7]] * len(running), cudagraph_stats=None)
        self.scheduler.update_from_output(scheduled, output)
        return [
            SimpleNamespace(request_id=req_id, outputs=[SimpleNamespace(token_ids=list(ids))])
            for req_id, ids in running.items()
        ]


@pytest.fixture
def stand_in(monkeypatch):
    llm_engine = StandInEngine()
    monkeypatch.setattr(
        closed_loop,
        "add_greedy_request",
        lambda engine, req_id, prompt, max_tokens: engine.add_request(req_id),
    )
    return llm_engine


def run(
    llm_engine, *, concurrency=2, num_steps=5, num_settle_steps=2, prompt_tokens=64, recorder=None
):
    resolved = Resolved(
        requested_mode="FULL",
        config_mode="FULL",
        runner=RunnerKind.V1,
        max_num_seqs=4,
        max_model_len=1024,
        vocab_size=1000,
        num_speculative_tokens=3,
        device_type="cpu",
    )
    booted = SimpleNamespace(
        llm_engine=llm_engine,
        resolved=resolved,
        scheduler=llm_engine.scheduler,
        runner=llm_engine.runner,
    )
    engine = Engine(launch=LAUNCH, booted=booted, ambient=(), dropped_flags=())
    return record_window(
        engine,
        concurrency=concurrency,
        num_steps=num_steps,
        num_settle_steps=num_settle_steps,
        prompt_tokens=prompt_tokens,
        salt="test",
        recorder=recorder,
    )


def test_a_window_holds_the_decode_steps_after_the_settling(stand_in):
    window = run(stand_in)
    assert [step.step_index for step in window.steps] == [0, 1, 2, 3, 4]
    assert {step.num_reqs for step in window.steps} == {2}
    assert {step.num_prompt_tokens for step in window.steps} == {0}
    assert {step.num_output_tokens for step in window.steps} == {2}
    assert not window.profiled
    (dispatch,) = window.steps[0].dispatch
    assert (dispatch.runtime_mode, dispatch.num_unpadded_tokens) == (RuntimeMode.FULL, 8)
    assert window.speculation.num_drafts == 10
    # one prefill step, one that shows all are decoding, two to settle, five recorded
    assert len(window.token_ids[0]) == 9


def test_the_next_window_starts_empty(stand_in):
    run(stand_in)
    assert stand_in.aborted == ["decodeperf-0", "decodeperf-1"]
    assert not stand_in.has_unfinished_requests()
    assert run(stand_in, concurrency=1).concurrency == 1


def test_listening_leaves_no_trace(stand_in):
    run(stand_in)
    assert "update_from_output" not in vars(stand_in.scheduler)
    assert "_determine_batch_execution_and_padding" not in vars(stand_in.runner)


def prefill_again(engine, running):
    engine.new.add("decodeperf-0")


def lose_one(engine, running):
    running.pop("decodeperf-1")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (prefill_again, "no prefill inside the window\nseen:     step 2 prefilled 64 tokens"),
        (lose_one, "2 requests in every step\nseen:     step 2 ran 1"),
    ],
)
def test_a_spoiled_step_makes_the_window_invalid(stand_in, spoil, message):
    stand_in.spoil[7] = spoil
    with pytest.raises(InvalidWindowError) as raised:
        run(stand_in)
    assert message in str(raised.value)
    assert "do:" in str(raised.value)
    assert not stand_in.has_unfinished_requests(), "the next window would start with these"


@pytest.mark.parametrize("concurrency", [0, 5, -1])
def test_a_concurrency_the_engine_can_not_run(stand_in, concurrency):
    with pytest.raises(InvalidWindowError, match=r"from 1 to max_num_seqs = 4"):
        run(stand_in, concurrency=concurrency)
    assert stand_in.num_steps == 0


def test_a_window_longer_than_the_model(stand_in):
    with pytest.raises(InvalidWindowError, match="max_model_len = 1024"):
        run(stand_in, num_steps=300)


def test_an_engine_that_never_decodes(stand_in, monkeypatch):
    monkeypatch.setattr(closed_loop, "_MAX_PREFILL_STEPS", 5)
    stand_in.step = list
    with pytest.raises(InvalidWindowError, match="2 without a first token"):
        run(stand_in)


def test_ctrl_c_in_a_step_leaves_an_empty_engine(stand_in):
    def interrupt(engine, running):
        raise KeyboardInterrupt

    stand_in.spoil[6] = interrupt
    with pytest.raises(KeyboardInterrupt):
        run(stand_in)
    assert not stand_in.has_unfinished_requests()
    assert "update_from_output" not in vars(stand_in.scheduler)


def test_a_recorder_is_entered_around_the_recorded_steps_only(stand_in):
    heard = []

    class Recorder:
        def __enter__(self):
            heard.append(("start", stand_in.num_steps))

        def __exit__(self, *error):
            heard.append(("stop", stand_in.num_steps))

        def step(self):
            heard.append("step")
            return pytest.MonkeyPatch.context()

    window = run(stand_in, recorder=Recorder())
    assert window.profiled
    assert heard == [("start", 4), *["step"] * 5, ("stop", 9)]
