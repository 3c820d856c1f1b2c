"""An option is declared once: a toy function gets one more, and what is made of its signature has it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Annotated, Any, Literal

import gradio as gr
import pytest
from annotated_doc import Doc
from annotated_types import Interval
from hypothesis import given
from hypothesis import strategies as st

from condviz.cli.options import of_function
from condviz.errors import ConfigError
from condviz.spec import Field, Key, checked, given_options, options_of, read_options, takes, write_options
from condviz.ui.events import publish
from condviz.ui.export import python_call
from condviz.ui.page import Fields


@checked
def before(text: str, *, method: Annotated[Literal["umap", "pca"], Doc("How vectors become points")] = "umap") -> str:
    """Draw a text."""
    return f"{text} by {method}"


@checked
def after(
    text: str,
    *,
    method: Annotated[Literal["umap", "pca"], Doc("How vectors become points")] = "umap",
    n_neighbors: Annotated[
        int, Interval(ge=2, le=200), Doc("How far a point looks"), Key("near", ("neighbors",)), Field("Neighbours")
    ] = 15,
    min_dist: Annotated[float, Interval(ge=0, lt=1), Doc("How close points lie")] = 0.1,
    clusters: Annotated[int | None, Interval(ge=1), Doc("How many")] = None,
) -> str:
    """Draw a text."""
    return f"{text} by {method} of {n_neighbors}, {min_dist}, {clusters}"


def endpoint(function: Callable[..., str]) -> dict[str, Any]:
    """Publish a function and return the parameters that the API tells, by name."""

    @takes(function)
    def draw(text: str, **options: Any) -> str:
        """Draw.

        Args:
            text: What.
        """
        return function(text, **options)

    with gr.Blocks() as blocks:
        publish(draw, "draw", heavy=False)
    told = blocks.get_api_info()["named_endpoints"]["/draw"]
    assert [one["python_type"]["type"] for one in told["returns"]] == ["str"]
    return {one["parameter_name"]: one for one in told["parameters"]}


def command(function: Callable[..., str]) -> argparse.ArgumentParser:
    """Return a command with the options of a function."""
    return argparse.ArgumentParser(parents=[of_function(function)])


def test_one_more_option_is_in_all_six() -> None:
    for function, has in ((before, False), (after, True)):
        with gr.Blocks():
            fields = Fields(function, prefix="cv-toy").components
        assert ("n_neighbors" in fields) == has
        assert ("near=7" in map("=".join, write_options(function, {"n_neighbors": 7}))) == has
        assert (read_options(function, {"near": ["7"]}).get("n_neighbors") == 7) == has
        assert ("n_neighbors" in endpoint(function)) == has
        script = python_call("draw", given_options(function, {"n_neighbors": 7}).items())
        assert ("n_neighbors=7" in script) == has
        assert ("--n-neighbors" in command(function).format_help()) == has
        assert (command(function).parse_known_args(["--n-neighbors", "7"])[1] == []) == has
    with pytest.raises(ConfigError, match="n_neighbors must be a whole number from 2 to 200, got 1"):
        after("a", n_neighbors=1)


def test_a_field_has_bounds_label_and_help() -> None:
    with gr.Blocks():
        fields = Fields(after, prefix="cv-toy")
    slider, distance = fields.components["n_neighbors"], fields.components["min_dist"]
    assert (slider.label, slider.info, slider.minimum, slider.maximum) == (
        "Neighbours",
        "How far a point looks",
        2,
        200,
    )
    assert (distance.minimum, distance.maximum) == (0, 0.99)
    assert [value for _, value in fields.components["method"].choices] == ["umap", "pca"]
    assert fields.check(["pca", 3.0, 0.5, None])["n_neighbors"] == 3
    with pytest.raises(ConfigError, match="min_dist"):
        fields.check(["pca", 3, 1, None])


@pytest.mark.parametrize(
    "wrong", [{"n_neighbors": True}, {"n_neighbors": 2.5}, {"min_dist": float("nan")}, {"method": "x"}]
)
def test_what_is_not_allowed_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be (a|one)"):
        after("a", **wrong)


def test_numbers_of_a_link_stay_within_their_bounds_and_the_rest_keeps_its_default() -> None:
    read = read_options(after, {"near": ["900"], "min_dist": ["x"], "method": ["none"], "clusters": ["4"]})
    assert read == {"method": "umap", "n_neighbors": 200, "min_dist": 0.1, "clusters": 4}
    assert read_options(after, {"neighbors": ["9"]})["n_neighbors"] == 9


@given(st.integers(2, 200), st.floats(0, 1, exclude_max=True), st.sampled_from(["umap", "pca"]))
def test_a_link_is_read_as_it_was_written(near: int, dist: float, method: str) -> None:
    chosen = {"method": method, "n_neighbors": near, "min_dist": dist, "clusters": None}
    written = {key: [text] for key, text in write_options(after, chosen)}
    assert read_options(after, written) == chosen


@given(st.text())
def test_any_text_in_a_link_is_read(text: str) -> None:
    read = read_options(after, {key: [text] for key in ("near", "min_dist", "method", "clusters")})
    after("a", **read)


def test_the_options_are_told_where_they_are_taken() -> None:
    told = endpoint(after)["n_neighbors"]
    assert told["parameter_has_default"]
    assert told["parameter_default"] == 15
    assert list(options_of(after)) == ["method", "n_neighbors", "min_dist", "clusters"]
    assert "a whole number from 2 to 200 (default: 15)" in " ".join(command(after).format_help().split())


def test_a_former_name_of_an_option_stays_a_parameter() -> None:
    def draw(text: str, *, near: Annotated[int, Interval(ge=2), Doc("How far"), Key("n", ("neighbors",))] = 15) -> str:
        return f"{text} {near}"

    @takes(draw, before=("neighbors",))
    def api_draw(text: str, **options: Any) -> str:
        return draw(text, **options)

    assert (api_draw("a"), api_draw("a", neighbors=30), api_draw("a", 15, 30)) == ("a 15", "a 30", "a 30")
