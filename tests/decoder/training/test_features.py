"""The feature cache holds what the target computes; one that is not whole, or is of something else, is refused."""

from __future__ import annotations

import json
import re
import threading

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fakes import VOCAB, random_target
from gumiho_decoder.training.features import FeatureCache, cache_bytes, data_fingerprint, read_features
from gumiho_theory import InputError

ROWS, LENGTH = 7, 10
TOKENS = np.random.default_rng(0).integers(0, VOCAB, (ROWS, LENGTH)).astype(np.uint32)
MASK = np.random.default_rng(1).random((ROWS, LENGTH)) < 0.7
TARGET = random_target(spread=0.2)


def cache(folder, target=TARGET, tokens=TOKENS, mask=MASK, dtype="float32", shard_rows=3) -> FeatureCache:
    return FeatureCache(folder, target, tokens, mask, dtype, shard_rows)


def made(folder, **changes) -> FeatureCache:
    found = cache(folder, **changes)
    found.make()
    return found


def shards(folder) -> list:
    return sorted(folder.glob("features-*.safetensors"))


@pytest.mark.parametrize(("dtype", "apart"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_cached_features_are_those_that_the_target_computes(tmp_path, dtype, apart):
    live = read_features(TARGET, torch.from_numpy(TOKENS.astype(np.int64)))
    kept = made(tmp_path, dtype=dtype).features([6, 0, 3])
    assert kept.dtype == torch.float32
    assert (kept - live[[6, 0, 3]]).abs().max() < apart * live.abs().max()


def test_features_are_what_the_lm_head_reads_and_padding_changes_none_before_it():
    tokens = torch.from_numpy(TOKENS.astype(np.int64))
    features = read_features(TARGET, tokens)
    logits = TARGET.model(input_ids=tokens).logits
    assert torch.allclose(TARGET.log_probabilities(features), logits.log_softmax(-1), atol=1e-5)
    padded = torch.cat([tokens[:, :6], torch.zeros_like(tokens[:, 6:])], dim=1)
    assert torch.allclose(read_features(TARGET, padded)[:, :6], features[:, :6], atol=1e-6)


def test_the_size_is_known_before_anything_is_written(tmp_path):
    announced = cache(tmp_path).bytes
    assert not list(tmp_path.iterdir())
    assert announced == cache_bytes(ROWS, LENGTH, TARGET.hidden_size, "float32")
    made(tmp_path)
    headers = sum(8 + int.from_bytes(path.read_bytes()[:8], "little") for path in shards(tmp_path))
    assert sum(path.stat().st_size for path in shards(tmp_path)) - headers == announced


def test_too_little_room_on_the_disk_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100}))
    with pytest.raises(InputError, match="GiB free"):
        made(tmp_path / "new")
    assert not shards(tmp_path / "new")


def test_a_killed_cache_is_not_complete_and_is_taken_up_shard_by_shard(tmp_path):
    class Killed(Exception):  # noqa: N818
        pass

    def kill(done: int) -> None:
        if done == 6:
            raise Killed

    killed = cache(tmp_path)
    with pytest.raises(Killed):
        killed.make(kill)
    assert not killed.complete
    with pytest.raises(InputError, match="never finished"):
        killed.check()
    before = [path.stat().st_mtime_ns for path in shards(tmp_path)]
    assert len(before) == 2
    whole = made(tmp_path)
    assert whole.complete
    assert [path.stat().st_mtime_ns for path in shards(tmp_path)[:2]] == before
    assert torch.equal(whole.features(range(ROWS)), made(tmp_path / "other").features(range(ROWS)))


def test_a_part_of_a_shard_left_by_a_kill_is_written_over(tmp_path):
    tmp_path.joinpath("features-00000.part").write_bytes(b"half")
    made(tmp_path)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("harm", ["gone", "short", "empty", "foreign", "of other blocks", "other shape", "no index"])
def test_a_cache_that_is_not_whole_is_refused_by_the_name_of_the_shard(tmp_path, harm):
    made(tmp_path)
    path, other = shards(tmp_path)[1], shards(tmp_path)[0]
    whole = path.read_bytes()
    place = path.name
    match harm:
        case "gone":
            path.unlink()
        case "short":
            path.write_bytes(whole[:-40])
        case "empty":
            path.write_bytes(b"")
        case "foreign":
            save_file(load_file(path), path)  # the same tensors, of nobody knows which target
        case "of other blocks":
            path.write_bytes(other.read_bytes())
        case "other shape":
            tensors = load_file(path)
            save_file({k: v[:1].clone() for k, v in tensors.items()}, path)
        case "no index":
            (tmp_path / "index.json").unlink()
            place = "index.json"
    with pytest.raises(InputError) as refused:
        cache(tmp_path).check()
    assert place in refused.value.place
    if harm not in ("gone", "no index"):  # nor is it taken for a finished shard while the others are made
        (tmp_path / "index.json").unlink()
        with pytest.raises(InputError, match=re.escape(path.name)):
            made(tmp_path)


def test_a_cache_of_another_target_or_other_data_or_in_another_dtype_is_refused_by_that_name(tmp_path):
    made(tmp_path)
    tokens = TOKENS.copy()
    tokens[0, 0] += 1
    for changes, name in [
        ({"target": random_target(1, spread=0.2)}, "target"),
        ({"tokens": tokens}, "data"),
        ({"mask": ~MASK}, "data"),
        ({"dtype": "bfloat16"}, "dtype"),
        ({"shard_rows": 2}, "shard_rows"),
    ]:
        with pytest.raises(InputError) as refused:
            cache(tmp_path, **changes)
        assert refused.value.place.endswith(f"index.json, {name}")


def test_an_index_that_is_no_index_is_refused(tmp_path):
    made(tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    for broken in ("", "[]", json.dumps(index | {"complete": "yes"}), json.dumps(index | {"shards": []})):
        (tmp_path / "index.json").write_text(broken)
        with pytest.raises(InputError, match="index.json"):
            cache(tmp_path)
    with pytest.raises(InputError, match="dtype"):
        cache(tmp_path / "b", dtype="float16")


def test_two_processes_each_write_their_shards_and_both_see_the_whole(tmp_path):
    caches = [cache(tmp_path), cache(tmp_path)]
    threads = [threading.Thread(target=caches[rank].make, kwargs={"rank": rank, "processes": 2}) for rank in (1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert all(found.complete for found in caches)
    assert torch.equal(caches[1].features(range(ROWS)), made(tmp_path / "alone").features(range(ROWS)))


def test_the_fingerprint_of_data_tells_tokens_mask_and_shape_apart_and_no_integer_types():
    base = data_fingerprint(TOKENS, MASK)
    assert base == data_fingerprint(TOKENS.astype(np.int64), MASK)
    assert base != data_fingerprint(TOKENS.reshape(LENGTH, ROWS), MASK.reshape(LENGTH, ROWS))
    assert base != data_fingerprint(TOKENS[::-1], MASK)
