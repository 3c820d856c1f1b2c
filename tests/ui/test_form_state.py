"""Links: whatever was in the form comes back, whatever stands in an address does no harm."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from condviz.ui.form_state import FormState, from_query, split_conditions

PRINTABLE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60)
CONDITION = PRINTABLE.map(lambda text: " ".join(text.split())).filter(bool)


@st.composite
def forms(draw: st.DrawFn) -> FormState:
    conditions = draw(st.lists(CONDITION, min_size=1, max_size=20))
    models = draw(st.lists(st.sampled_from(["minilm", "csr", "case", "a b&c=d"]), unique=True))
    pair = draw(st.permutations(range(len(conditions)))) if len(conditions) > 1 else [0, 1]
    return FormState(draw(PRINTABLE), draw(PRINTABLE), tuple(conditions), tuple(models), *pair[:2], draw(PRINTABLE))


@given(forms())
def test_a_link_brings_the_form_back(form: FormState) -> None:
    assert from_query(form.to_query()) == form
    assert from_query("?" + form.to_query()) == form


@given(forms())
def test_json_brings_the_form_back(form: FormState) -> None:
    assert FormState.from_dict(form.to_dict()) == form


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_any_address_gives_a_state_or_none(query: str) -> None:
    state = from_query(query)
    assert state is None or max(state.first, state.second) <= max(1, len(state.conditions) - 1)


@given(st.text(st.characters(exclude_categories=()), max_size=50))
def test_any_text_can_be_put_into_a_link(text: str) -> None:
    query = FormState(text, text, (text,), (text,)).to_query()
    assert query.isascii()
    from_query(query)


def test_long_links_are_cut_and_many_fields_are_ignored() -> None:
    state = from_query("&".join(["s1=" + "x" * 9000, *[f"c=condition+{i}" for i in range(60)], "d=0-59"]))
    assert state is not None
    assert (len(state.sentence1), len(state.conditions), state.first, state.second) == (5000, 20, 0, 1)
    assert from_query("&".join(f"c={i}" for i in range(10_000))) is None


def test_unknown_models_are_dropped_in_the_order_of_the_page() -> None:
    assert FormState(models=("b", "x", "a")).with_models(["a", "b", "c"]).models == ("a", "b")


def test_lines_become_conditions_and_control_characters_stay_to_be_reported() -> None:
    assert split_conditions(" a \r\n\n\tb\rc\x0bd\n") == ("a", "b", "c\x0bd")
