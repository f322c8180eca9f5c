"""Identity of clients."""

import pytest
from case_tables import cases

from tokenweir.stream.serve.app.guard import network_of

CASES = cases(__file__)


@pytest.mark.parametrize(("address", "network"), CASES["the_network_of_a_client"])
def test_the_network_of_a_client(address, network):
    assert network_of(address) == network
