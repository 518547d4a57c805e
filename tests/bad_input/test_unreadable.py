"""What cannot be read at all: the error names the file and nothing else escapes."""

import time
from pathlib import Path

import pytest

from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.language.describe_keys import starter
from fsm_dyn.language.loader import load


def error_of(source: object, **more: str) -> str:
    with pytest.raises(InputError) as caught:
        load(source, **more)  # type: ignore[arg-type]
    return str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.yaml"
    assert error_of(path).startswith(f"{path}: no such file")


def test_directory(tmp_path: Path) -> None:
    assert "cannot be read" in error_of(tmp_path)


def test_path_with_a_null_character() -> None:
    assert "cannot be read" in error_of("a\0b.yaml")


def test_ten_megabytes_are_refused_fast(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_text("fsm_dyn: 1\nname: big\nparameters:\n" + "".join(f"  p{i}: {i} m\n" for i in range(800_000)))
    assert path.stat().st_size > 10_000_000
    start = time.perf_counter()
    message = error_of(path)
    assert time.perf_counter() - start < 0.5
    line = path.read_bytes()[:1_000_000].count(b"\n") + 1
    assert message.startswith(f"{path}:{line}:")
    assert "the file is too large" in message
    assert "allowed: 1,000,000 bytes" in message


def test_ten_megabytes_of_text() -> None:
    assert "too large" in error_of(None, text="# comment\n" * 1_000_000)


def test_a_large_file_below_the_bound_is_refused_in_time(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("fsm_dyn: 1\nparameters:\n" + "".join(f"  p{i}: 1\n" for i in range(80_000)))
    start = time.perf_counter()
    assert "too many values" in error_of(path)
    assert time.perf_counter() - start < 5


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"fsm_dyn: 1\nsummary: Gr\xfc\xdfe\n")
    assert error_of(path).startswith(f"{path}:2:12: the file is not UTF-8 text")


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"\x7fELF\x02", b"fsm_dyn: \x1b[31m1"])
def test_binary(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(content)
    assert str(path) in error_of(path)


def test_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + starter("bom").encode())
    assert load(path).name == "bom"


def test_yaml_given_as_a_path() -> None:
    assert "give the YAML itself as `text=`" in error_of("fsm_dyn: 1\nname: a\n")


def test_nothing_given() -> None:
    assert "no model was given" in error_of(None)


def test_mapping_and_text() -> None:
    assert "give one of them" in error_of({}, text="fsm_dyn: 1")


class TestMapping:
    def test_place_is_the_path_of_keys(self) -> None:
        model = {"fsm_dyn": 1, "coordinates": ["x"], "bodies": {"b": {"center": "O", "mass": "1 +"}}}
        assert error_of(model).startswith("<mapping> bodies.b.mass: ")

    def test_unknown_key(self) -> None:
        assert error_of({"fsm_dyn": 1, "boddies": {}}).startswith("<mapping> boddies: a model has no key 'boddies'")

    def test_strange_values(self) -> None:
        assert "found: object" in error_of({"fsm_dyn": object()})
        assert "a key must be a text" in error_of({1: 1})
        assert "a key must be a text" in error_of({("a", "b"): 1})

    def test_bytes_are_no_list(self) -> None:
        assert "found: bytes" in error_of({"fsm_dyn": b"1"})

    def test_a_mapping_inside_itself(self) -> None:
        model: dict[str, object] = {"fsm_dyn": 1}
        model["parameters"] = model
        assert "contains itself" in error_of(model)

    def test_a_wide_mapping(self) -> None:
        assert "too large" in error_of({"fsm_dyn": 1, "coordinates": ["q"] * 100_000})

    def test_lone_surrogates(self) -> None:
        assert "may not stand in a file" in error_of({"fsm_dyn": 1, "summary": "\ud800"})

    def test_not_finite(self) -> None:
        model = {"fsm_dyn": 1, "coordinates": ["x"], "bodies": {"b": {"center": "O", "mass": float("nan")}}}
        with pytest.raises(ModelError, match="finite number"):
            load(model)
