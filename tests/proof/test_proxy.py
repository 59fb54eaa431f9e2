"""`h2t2 proxy`'s options."""

import pytest

from h2t2_tools.common.errors import UserError
from h2t2_tools.proof.proxy import Faults


def test_proxy_faults_are_checked():
    with pytest.raises(UserError, match="--drop 2"):
        Faults(drop=2.0).check()
    with pytest.raises(UserError, match="shorter delay first"):
        Faults(delay_ms=(5, 1)).check()
