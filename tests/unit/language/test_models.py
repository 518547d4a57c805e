"""Shipped models are found by bare name, files by path, and the error of a miss lists the existing ones."""

from pathlib import Path

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.language import models


def test_every_shipped_model_is_found_by_name():
    assert "shopping_cart" in models.names()
    for name in models.names():
        assert models.find(name).is_file()
        assert models.resolve(name) == models.find(name)


def test_a_misspelt_name_lists_the_models_and_the_nearest():
    with pytest.raises(InputError) as caught:
        models.find("shoping_cart")
    assert "did you mean 'shopping_cart'?" in str(caught.value)
    assert caught.value.allowed.startswith("shopping_cart, ")
    assert "models: fsm-dyn models" in caught.value.allowed


@pytest.mark.parametrize("name", ["../shopping_cart", "shopping_cart.yaml", "", "a/b", "."])
def test_find_never_leaves_the_folder_of_models(name):
    with pytest.raises(InputError):
        models.find(name)


def test_a_file_of_the_same_name_does_not_shadow_a_shipped_model(tmp_path, monkeypatch):
    (tmp_path / "shopping_cart").write_text("fsm_dyn: 1\n")
    monkeypatch.chdir(tmp_path)
    assert models.resolve("shopping_cart") == models.find("shopping_cart")
    assert models.resolve("./shopping_cart") == Path("shopping_cart")


def test_a_missing_file_names_the_nearest_beside_it(tmp_path):
    (tmp_path / "door.yaml").write_text("fsm_dyn: 1\n")
    with pytest.raises(InputError, match=r"did you mean 'door\.yaml'"):
        models.resolve(tmp_path / "dor.yaml")
    with pytest.raises(InputError, match="is a folder"):
        models.resolve(tmp_path)


def test_a_link_to_no_file_is_named_as_such(tmp_path):
    (tmp_path / "door.yaml").symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(InputError, match=r"door\.yaml links to no file") as caught:
        models.resolve(tmp_path / "door.yaml")
    assert caught.value.found.endswith("gone.yaml")
