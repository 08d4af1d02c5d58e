"""What the tests share."""

import numpy as np
import pytest


@pytest.fixture
def random():
    return np.random.default_rng(20150507)


@pytest.fixture
def normal(random):
    """normal(shape, dtype): standard normal numbers."""
    return lambda *shape, dtype=np.float64: random.standard_normal(shape).astype(dtype)
