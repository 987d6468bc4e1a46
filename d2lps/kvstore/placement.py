"""The servers of a store's values. This needs no MXNet."""
from functools import partial

from d2lps.annotations import Key
from d2lps.checks import checked, integer
from d2lps.kvstore.store_arguments import store_key, up_to_1000


@checked(key=store_key, size=partial(integer, least=0, most=1 << 50),
         num_servers=up_to_1000,
         split_from=integer)
def place(key: Key, size: int, num_servers: int, split_from: int = 1_000_000
          ) -> list[tuple[int, int, int]]:
    """Places of a value of `size` elements: [(server, start, end), ...].

    A value of `split_from` elements or more is cut into a part for each
    server. A smaller value goes whole to server number * 9973 mod
    num_servers. The number of a str is the number that its bytes make,
    modulo a prime. MXNet does the same, but its number of a str is the
    place in the order of `init`.

    Raises:
        ValueError: for a bad argument, such as more than 1,000 servers.
    """
    if size < split_from:
        number = key
        if isinstance(key, str):  # its bytes are the digits of a number
            number = int.from_bytes(key.encode(), 'big') % 65_521
        # mypy takes `number` for a str still.
        return [(number * 9973 % num_servers, 0, size)]  # type: ignore
    n = min(num_servers, size)
    bounds = [int(size / n * i + 0.5) for i in range(n + 1)]  # rounded
    return list(zip(range(n), bounds, bounds[1:]))
