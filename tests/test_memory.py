import pytest

from bsufs import _memory
from bsufs._memory import available_memory, parse_size, size_in_words


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        ("500M", 500 * 10**6),
        ("1.5GiB", 3 * 2**29),
        ("64KiB", 2**16),
        (".5T", 5 * 10**11),
        ("123", 123),
        ("7B", 7),
    ],
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "much", "-2GB", "2XB", "3iB", "1e3", "0", "0.1B"])
def test_no_size_is_an_error(text):
    with pytest.raises(ValueError, match="a size must be"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 KB"), (2e9, "2.0 GB"), (3e15, "3000.0 TB")],
)
def test_sizes_in_words(size, words):
    assert size_in_words(size) == words


@pytest.fixture
def system(monkeypatch):
    """Return a function that sets what the system says."""

    def pretend(files):
        def read_text(path, encoding):
            if str(path) not in files:
                raise FileNotFoundError(path)
            return files[str(path)]

        monkeypatch.setattr(_memory.Path, "read_text", read_text)
        monkeypatch.setattr(_memory, "_left_of_address_space", lambda: None)

    return pretend


def test_the_least_of_all_limits_counts(system):
    machine = {"/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:  8000 kB\n"}
    system(machine)
    assert available_memory() == 8000 * 1024
    container = {
        "/proc/self/cgroup": "0::/job/step\n",
        "/sys/fs/cgroup/job/step/memory.max": "max\n",
        "/sys/fs/cgroup/job/memory.max": "5000000\n",
        "/sys/fs/cgroup/job/memory.current": "3000000\n",
        "/sys/fs/cgroup/job/memory.stat": "anon 5\ninactive_file 1000000\n",
    }
    system(machine | container)
    assert available_memory() == 3_000_000
    older = {
        "/proc/self/cgroup": "5:cpu:/\n4:cpu,memory:/job\n0::/\n",
        "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "4000000\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": "4500000\n",
    }
    system(machine | older)
    assert available_memory() == 0


def test_a_system_that_tells_nothing_bounds_by_what_it_has(system, monkeypatch):
    system({})
    monkeypatch.setattr(_memory.os, "sysconf", lambda name: {"SC_PHYS_PAGES": 7}.get(name, 100))
    assert available_memory() == 700
    monkeypatch.delattr(_memory.os, "sysconf")
    assert available_memory() > 2**60


def test_the_limit_on_the_address_space_counts(monkeypatch):
    resource = pytest.importorskip("resource", reason="there are no such limits here")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (2**40, 2**40))
    left = _memory._left_of_address_space()
    assert 0 < left < 2**40
    assert available_memory() <= left
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert _memory._left_of_address_space() is None
