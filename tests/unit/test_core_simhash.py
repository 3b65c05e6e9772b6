"""core/pages/simhash: near texts get near bits, others do not. Case DED-04."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool import limits
from crawltool.core.pages import simhash


def words(seed: int, count: int = 500) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(count)]


def bits(text: str) -> int:
    found = simhash.fingerprint(text).bits
    assert found is not None
    return found


@pytest.mark.parametrize("text", ["", "OK", "Not found", "404", "a b c", "a b d", "word " * (limits.SIMHASH_WORDS_MIN - 1)])
def test_ded_04_a_tiny_text_has_no_fingerprint(text: str) -> None:
    assert simhash.fingerprint(text) == (None, len(text.split()))


def test_ded_04_three_changed_words_of_500_are_near_and_other_texts_are_far() -> None:
    near, far = [], []
    for seed in range(21):
        one = words(seed)
        other = list(one)
        for place in (10, 200, 400):
            other[place] = "changed"
        near.append(simhash.distance(bits(" ".join(one)), bits(" ".join(other))))
        far.append(simhash.distance(bits(" ".join(one)), bits(" ".join(words(seed + 100)))))
    assert sorted(near)[10] <= 5  # nine of 498 shingles change: four bits are to be expected
    assert min(far) > 16


def test_ded_04_a_chinese_text_without_blanks_has_a_fingerprint_of_its_own() -> None:
    text = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳"
    assert simhash.fingerprint(text).words == len(text)
    assert simhash.distance(bits(text), bits(text[::-1])) > 16


@pytest.mark.parametrize("text", ["สวัสดีชาวโลก" * 5, "ひらがなカタカナ" * 5, "🙂🙃" * 20])
def test_other_scripts_without_blanks_count_each_sign(text: str) -> None:
    assert simhash.fingerprint(text).words >= len(text) - text.count("ั") * 2


def test_case_and_punctuation_and_blanks_do_not_count() -> None:
    text = " ".join(words(3))
    assert bits(text) == bits("  “" + text.upper().replace(" ", " —\n") + "”!")


def test_plain_and_other_texts_hash_the_same_word_alike() -> None:
    assert simhash._word_hashes("alpha beta").tolist() == simhash._word_hashes("“Alpha” beta").tolist()


def test_the_arithmetic_of_version_1_does_not_change() -> None:
    assert simhash.VERSION == 1
    assert simhash.to_hex(bits(" ".join(f"word{i}" for i in range(100)))) == "04b1d50680e12254"


@pytest.mark.parametrize("count", [30, 254, 255, 256, 257, 258, 1000])
def test_each_bit_is_what_most_shingles_say(count: int) -> None:
    hashes = simhash._word_hashes(" ".join(words(count, count)))
    ones = [sum(int(value) >> bit & 1 for value in hashes) for bit in range(64)]
    assert simhash._majority(hashes) == sum(1 << bit for bit in range(64) if ones[bit] * 2 > len(hashes))


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_no_text_raises_and_the_words_are_counted(text: str) -> None:
    found = simhash.fingerprint(text * 2)
    assert (found.bits is None) == (found.words < limits.SIMHASH_WORDS_MIN)
