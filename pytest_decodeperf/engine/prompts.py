"""Fixed prompts of token ids: the same for everybody, no tokenizer needed."""

from __future__ import annotations

import hashlib
import random
from typing import Final

_SEED: Final = 20261201
_LOWEST_TOKEN: Final = 10  # below lie special tokens of the usual vocabularies


def make_prompts(
    *, count: int, num_tokens: int, vocab_size: int, salt: str
) -> tuple[tuple[int, ...], ...]:
    """Make ``count`` prompts of ``num_tokens`` ids below ``vocab_size``.

    Different salts share no prefix, so a warm-up can't fill the prefix cache of a measurement.

    Raises:
        ValueError: A size below 1, or a vocabulary without room above the special tokens.
    """
    if count < 1 or num_tokens < 1 or vocab_size <= _LOWEST_TOKEN + 1:
        raise ValueError(
            f"expected count and num_tokens >= 1 and vocab_size > {_LOWEST_TOKEN + 1}, "
            f"got {count}, {num_tokens}, {vocab_size}"
        )
    generator = random.Random(f"{_SEED}:{salt}")  # noqa: S311 - reproducible, not secret
    return tuple(
        tuple(generator.randrange(_LOWEST_TOKEN, vocab_size) for _ in range(num_tokens))
        for _ in range(count)
    )


def prompts_digest(prompts: tuple[tuple[int, ...], ...]) -> str:
    """Identity of a prompt set: the first 12 hex digits of a SHA-256 over its ids."""
    text = ";".join(",".join(map(str, prompt)) for prompt in prompts)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
