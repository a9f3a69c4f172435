import urllib.error
import urllib.request
import uuid

import engines
import pytest
import service


def pytest_configure(config: pytest.Config) -> None:
    if not engines.S3:
        raise pytest.UsageError("SLUICE_S3 is not set: start these tests with `npm run test:interop`")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A table name that no other test, and no earlier run, has."""
    test = "".join(c if c.isalnum() else "_" for c in request.node.name)[:60]
    return f"interop.{test}_{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def served() -> None:
    """Fails, and does not skip, when the service is not there: a run without it has shown nothing."""
    if not service.URL:
        pytest.fail("SLUICE_URL is not set: the service is not running")
    try:
        urllib.request.urlopen(service.URL + "/v1/tables", timeout=10).read()
    except urllib.error.HTTPError as error:
        pytest.fail(f"service answers GET /v1/tables with {error.code}")
    except OSError as error:
        pytest.fail(f"service does not answer at {service.URL}: {error}")
