"""Settings of a server: its address, its batches, its limits. Loads nothing: `--help` is fast."""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, final

from sixjars_runtime.errors import DataError

MEGABYTE: Final = 1 << 20


@final
@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server, each an option of `sixjars serve`.

    >>> ServerSettings(port=8001).loopback, ServerSettings(host="::1").loopback
    (True, True)
    >>> ServerSettings(host="0.0.0.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.DataError: others can reach 0.0.0.0, so requests need a token: add --token, ...
    """

    host: str = "127.0.0.1"
    """The address to listen on; any but loopback needs a token."""
    port: int = 8000
    """The port; 0 for any that is free."""
    token: str | None = None
    """What requests must carry, as `Authorization: Bearer TOKEN`."""
    batch: int = 64
    """Most inputs that are computed together."""
    wait_ms: float = 3.0
    """How long a batch waits for others, where the one before it held more than one request."""
    queue: int = 1024
    """Most inputs that wait; further requests are answered 503."""
    time_limit: float = 30.0
    """Seconds for a request, after which it is answered 504."""
    max_inputs: int = 256
    """Most inputs of a request."""
    max_text: int = 100_000
    """Most characters of an input."""
    max_upload_mb: int = 32
    """Most megabytes of the files of a request."""
    max_search: int = 64
    """The widest beam, and the most outputs for an input."""

    def __post_init__(self) -> None:
        if self.token is None and not self.loopback:
            raise DataError(
                f"others can reach {self.host}, so requests need a token: "
                "add --token, or listen on 127.0.0.1."
            )
        if self.token is not None and not re.fullmatch(r"[!-~]+", self.token):
            raise DataError(
                "the token must be made of ASCII letters, digits and signs, without spaces."
            )
        if not 0 <= self.port <= 65535:
            raise DataError(f"port must lie between 0 and 65535, but is {self.port}.")
        for name in ("batch", "queue", "max_inputs", "max_text", "max_upload_mb", "max_search"):
            if getattr(self, name) < 1:
                raise DataError(f"{name} must be at least 1, but is {getattr(self, name)}.")
        if not 0 < self.time_limit <= 86400 or not 0 <= self.wait_ms <= 1000:
            raise DataError(
                "time_limit must lie between 0 seconds and a day, and wait_ms between 0 and 1000."
            )
        if self.queue < self.max_inputs:
            inputs = f"{self.max_inputs} inputs (max_inputs)"
            raise DataError(f"queue is {self.queue}, but one request may have {inputs}.")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def json_bytes(self) -> int:
        """Most bytes of a request without files."""
        return 4 * MEGABYTE

    @property
    def upload_bytes(self) -> int:
        """Most bytes of a request with files."""
        return self.max_upload_mb * MEGABYTE + self.json_bytes

    @property
    def held_bytes(self) -> int:
        """Most bytes of all requests at a time."""
        return 16 * self.upload_bytes
