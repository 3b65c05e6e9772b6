"""How does fetch go easy on a machine that runs out of descriptors, ports or memory?

A companion of stages/fetch. core/pressure is the rule; here are the clock, the looks at memory and the words. A target that
could not be asked waits with the others until there is room again, or until its lease is too old: it is never blamed.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from crawltool import limits
from crawltool.core.pressure import Pressure, is_memory_short
from crawltool.net import failures
from crawltool.stores import machine


class Throttle:
    """How many exchanges may be in flight now."""

    def __init__(
        self,
        wanted: int,
        say: Callable[[str], object],
        memory: Callable[[], machine.Memory | None] = machine.memory,
    ) -> None:
        self._wanted, self._say, self._memory = wanted, say, memory
        self._rule = Pressure(wanted)

    @property
    def allowed(self) -> int:
        """Give the number that may be in flight."""
        return self._rule.allowed

    def grant(self, descriptors: int) -> None:
        """Begin with no more than there are descriptors for."""
        if descriptors < self._wanted:
            most = max(1, descriptors)
            self._say(f"this machine grants descriptors for --concurrency {most}, not for {self._wanted} (see ulimit -n)")
            self._rule = Pressure(most)

    def is_shortage(self, error: str | None, reason: str | None, in_flight: int) -> bool:
        """Tell whether an exchange or look-up failed because this machine lacked something; then fewer may be in flight."""
        if error != "returned" or not reason or not reason.startswith(failures.OWN_TROUBLE_IS):
            return False
        self._lower(reason.removeprefix(failures.OWN_TROUBLE_IS), in_flight)
        return True

    async def pause(self) -> None:
        """Wait before another try: what is in the air must end first."""
        await trio.sleep(limits.PRESSURE_CALM_S)

    def _lower(self, why: str, in_flight: int) -> None:
        was_low = self._rule.is_low
        if self._rule.shortage(in_flight, trio.current_time()) and not was_low:
            most, allowed = self._rule.most, self._rule.allowed
            self._say(f"this machine runs short ({why}): --concurrency is {allowed} for now, not {most}")

    async def watch(self, in_flight: Callable[[], int], on_more: Callable[[], None]) -> None:
        """Look at the memory once a second, and let more fly when it has been calm."""
        while True:
            memory = self._memory()
            if memory is not None and is_memory_short(*memory):
                self._lower(f"{memory.available // limits.MIB} MiB of memory left", in_flight())
            elif self._rule.calm(trio.current_time()):
                on_more()
                if not self._rule.is_low:
                    self._say(f"--concurrency is {self._rule.most} again")
            await trio.sleep(limits.PRESSURE_CALM_S)
