"""One GPU, found by any of its names."""

import pytest
from pydantic import ValidationError

from service.questions.parts.gpu import OnGpu
from service.questions.refusals import RefusalError
from service.questions.sources import Sources


def test_a_gpu_is_found_or_refused_by_name(sources: Sources) -> None:
    assert OnGpu(gpu=" H100 ").gpu_facts(sources).id == "h100-sxm-80gb"
    with pytest.raises(RefusalError) as refused:
        OnGpu(gpu="h10").gpu_facts(sources)
    assert refused.value.faults[0].field == "gpu"


def test_a_gpu_must_be_stated() -> None:
    with pytest.raises(ValidationError, match="Field required"):
        OnGpu.model_validate({})
