"""The reference values themselves: the stored encoders have to come out as stored before anything is built on them."""

from __future__ import annotations

import pytest
import torch

from tests.golden import Precision, case_names, each_precision, load_case, requires_golden, tiny_encoder

pytestmark = requires_golden


@each_precision
@pytest.mark.parametrize("name", case_names("backbone"))
def test_encoder_gives_the_stored_hidden_states(name: str, precision: Precision) -> None:
    case = load_case(name)
    mask = case.arrays["input.mask"]
    with torch.inference_mode():
        output = tiny_encoder(name, precision.dtype)(
            input_ids=case.arrays["input.ids"],
            attention_mask=mask,
            token_type_ids=case.arrays.get("input.types"),
            output_hidden_states=True,
        )
    real = mask.unsqueeze(-1)
    case.check("hidden_states", torch.stack(output.hidden_states) * real, precision)
    case.check("average", (output.last_hidden_state * real).sum(1) / real.sum(1), precision)


@each_precision
@pytest.mark.parametrize("name", [name for name in case_names("kgc_bi") if load_case(name).group("tail_encoder")])
def test_second_encoder_of_simkgc_loads(name: str, precision: Precision) -> None:
    case = load_case(name)
    encoder = tiny_encoder(case.backbone, precision.dtype, weights=case.group("tail_encoder"))
    for key, value in case.group("tail_encoder", dtype=precision.dtype).items():
        torch.testing.assert_close(encoder.get_parameter(key).data, value, rtol=0.0, atol=0.0)
