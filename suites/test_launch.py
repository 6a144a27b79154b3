"""What the launch alone tells, without a GPU: graphs of every batch size, nothing lost.

vLLM resolves each launch by the rules of the hardware it is for, in a process of its own.
"""

import pytest

from pytest_decodeperf.launch.record import LaunchError
from pytest_decodeperf.preflight import binary_coverage, coverage, downgrade
from pytest_decodeperf.preflight.resolving import resolve_launch
from pytest_decodeperf.report.results import UNMEASURED
from pytest_decodeperf.vllm_compat.libraries import installed_libraries
from pytest_decodeperf.vllm_compat.resolution import Resolution

pytestmark = pytest.mark.launch


@pytest.fixture
def resolution(launch, request):
    try:
        reply = resolve_launch(launch)
    except LaunchError as error:
        pytest.fail(str(error), pytrace=False)
    if isinstance(reply, Resolution):
        return reply
    if not reply.vllm_version:
        # a session of such skips alone must not be green
        request.node.user_properties.append((UNMEASURED, f"{launch.name}: {reply.reason}"))
        pytest.skip(f"{launch.name}: {reply.reason}, and only vLLM knows its rules")
    pytest.fail(f"{launch.name}: vLLM {reply.vllm_version} refuses: {reply.reason}", pytrace=False)


def test_every_batch_size_has_its_graph(resolution, launch, judge):
    judge(coverage.every_batch_size_has_its_graph(resolution, launch.expectation, launch.plan))


def test_every_draft_has_its_graph(resolution, launch, judge):
    judge(coverage.every_draft_has_its_graph(resolution, launch.expectation))


def test_launch_keeps_its_graph_mode(resolution, launch, judge):
    judge(downgrade.launch_keeps_its_graph_mode(resolution, launch))


def test_launch_keeps_its_capture_sizes(resolution, launch, judge):
    judge(downgrade.launch_keeps_its_capture_sizes(resolution, launch.expectation))


def test_launch_keeps_async_scheduling(resolution, launch, judge):
    judge(downgrade.launch_keeps_async_scheduling(resolution, launch.expectation))


def test_launch_keeps_prefix_caching(resolution, launch, judge):
    judge(downgrade.launch_keeps_prefix_caching(resolution, launch.expectation))


def test_launch_keeps_its_model_runner(resolution, launch, judge):
    judge(downgrade.launch_keeps_its_model_runner(resolution, launch.expectation))


@pytest.mark.cuda
def test_libraries_hold_code_for_the_card(launch, judge):
    capability = launch.hardware.compute_capability
    if capability is None:
        pytest.skip(f"{launch.name} names no architecture")
    libraries = binary_coverage.files_coverage(installed_libraries(), capability)
    if not any(library.architectures for library in libraries):
        pytest.skip("no CUDA libraries of vLLM are installed here (a CPU build, or none)")
    judge(binary_coverage.libraries_hold_code_for_the_card(libraries, capability))
