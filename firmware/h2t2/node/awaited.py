# A node in a program with asyncio: its loop lets other tasks run between two turns, and between two steps of the local model.
# Only such a program loads this module.
import asyncio
import gc

from ..clock import FAR_MS, longest, remaining, ticks_add, ticks_diff, ticks_ms
from ..modules import IS_BOARD
from .sensing import PARTIAL, PENDING, Sensing
from .service import BUSY_MS, Service, state

if 0:  # for type checkers
    from ..annotations import Any, Awaitable, Callable

SLICE_MS = 5  # steps of the local model run for so long, and then other tasks; a step that has begun ends
DUE = "due"
RESTS = 25  # times as long as a collection of garbage took, the node waits for the next
ACTS = 4  # decisions whose act() has not ended; with as many the node takes no sample


def sleep_ms(ms: int) -> "Awaitable[None]":
    """Let other tasks run for so long."""
    if hasattr(asyncio, "sleep_ms"):
        pause: "Awaitable[None]" = asyncio.sleep_ms(ms)
    else:
        pause = asyncio.sleep(ms / 1000)
    return pause


class Awaited:
    """Calls functions of a program, each of which may be an async function.

    Args:
        sense: Without arguments; an async one ends the node with StopAsyncIteration.
        act: Called once for each decision. An async one is awaited before the next is called, in the order of decisions.
        program: The module of an app, for its other functions.

    Attributes:
        acts: Coroutines of act() that have not ended.
        tasks: The running ones, of sense() and of act().
    """

    def __init__(self, sense: "Callable[[], Any]", act: "Callable[..., Any]", program: "Any" = None):
        self.functions = sense, act
        self.program = program
        self.acts: "list[Any]" = []
        self.tasks: "list[Any]" = [None, None]
        self.values: "Any" = None
        self.error: "Exception | None" = None

    def __getattr__(self, name: str) -> "Any":
        return getattr(self.program, name)

    def sense(self) -> "Any":
        """Return what the program's sense() returns; PENDING until it has."""
        if self.tasks[0]:
            if not self.tasks[0].done():
                return PENDING
            self.tasks[0] = None
            if self.error:
                raise self.error
            return self.values
        values = self.functions[0]()
        if not hasattr(values, "send"):  # a plain function
            return values
        self.tasks[0] = asyncio.create_task(self._sense(values))
        return PENDING

    async def _sense(self, values: "Awaitable[Any]") -> None:
        self.error = None
        try:
            self.values = await values
        except StopAsyncIteration:
            self.error = StopIteration()
        except Exception as error:
            self.error = error

    def act(self, *arguments: "Any") -> None:
        """Call the program's act()."""
        ending = self.functions[1](*arguments)
        if hasattr(ending, "send"):
            self.acts.append(ending)

    def continue_acts(self, complain: "Callable[[str, Exception], object]") -> None:
        """Let the coroutines of act() run, one after the other. complain: called with "act" and an exception."""
        if self.acts and (not self.tasks[1] or self.tasks[1].done()):
            self.tasks[1] = asyncio.create_task(self._act(complain))

    async def _act(self, complain: "Callable[[str, Exception], object]") -> None:
        while self.acts:
            try:
                await self.acts[0]
            except Exception as error:  # the decision stands
                complain("act", error)
            self.acts.pop(0)

    def sensing(self, sensor: "Any", **options: "Any") -> "AwaitedSensing":
        """Return the Sensing of a node with these functions; arguments as Sensing's."""
        sensing = AwaitedSensing(sensor, **options)
        sensing.awaited = self
        return sensing

    def service(self, *others: "Any", **options: "Any") -> "AwaitedService":
        """Return the Service of a node with these functions; arguments as Service's."""
        return AwaitedService(*others, **options)

    def cancel(self) -> None:
        """End the coroutines."""
        for task in self.tasks:
            if task:
                task.cancel()
        for ending in self.acts[1 if self.tasks[1] else 0 :]:
            ending.close()
        self.acts.clear()


class AwaitedSensing(Sensing):
    """Calls a sensor on schedule, and runs the local model on its sample in slices, each of which take() returns as PARTIAL.

    The sample then has None in place of the input: the model holds it.

    Attributes:
        awaited: The Awaited with the sensor.
        model: An Int8Model; None: a local model that computes all at once.
        sample: The one that the model works on.
        step: The model's next.
        slice_ms: Time that a slice takes: the longest of late.
    """

    awaited = model = sample = None  # type: Any
    step = slice_ms = 0

    def take(self, slack_ms: int = FAR_MS) -> "Any":
        model = self.model
        if not self.sample:
            if len(self.awaited.acts) >= ACTS:
                return None
            sample = Sensing.take(self, slack_ms)
            if sample is None or sample is PARTIAL or not model:
                return sample
            try:
                model.load(sample[0])
            except Exception:  # a sample of the wrong size: the node complains
                return sample
            self.sample = sample
            self.step = 0
            return PARTIAL
        if slack_ms <= self.slice_ms:
            return None
        sample = self.sample
        if self.step == len(model.steps):
            self.sample = None
            return (None, sample[1], sample[2])
        began = ticks_ms()
        try:
            while True:
                model.run_step(self.step)
                self.step += 1
                if self.step == len(model.steps) or not 0 <= ticks_diff(ticks_ms(), began) < SLICE_MS:
                    break
        except Exception:  # the node runs the model again, and complains
            self.sample = None
            return sample
        self.slice_ms = longest(self.slice_ms, began)
        return PARTIAL


class AwaitedService(Service):
    """A Service that runs beside the tasks of a program: `await arun()`. When that is cancelled, it saves the policy.

    Raises:
        ValueError: The configuration lets the board sleep.
    """

    sensing: AwaitedSensing

    def __init__(self, node: "Any", sensing: AwaitedSensing, *others: "Any", **options: "Any"):
        Service.__init__(self, node, sensing, *others, **options)
        if self.sleep:
            raise ValueError("sleep: it would stop the other tasks of a program with asyncio")
        self.is_kept = False
        self.pieces: "Any" = ()  # of the snapshot that is due
        self.collect_at = ticks_ms()  # earliest collection of garbage
        self.rest_ms = 0  # after the last one
        self.reports: "Any" = None  # the entries of a report that is to be sent; DUE: they are to be made
        model = node.ldl
        while hasattr(model, "ldl"):  # of a head, or of many classes
            model = model.ldl
        if hasattr(model, "run_step"):
            sensing.model = model

    def run(self, samples: int = 0) -> None:
        """Work as Service.run() does, in an event loop of its own."""
        asyncio.run(self.arun(samples))

    async def arun(self, samples: int = 0) -> None:
        """Work as Service.run() does, beside other tasks. None waits longer than a turn, or a step of the local model."""
        node = self.node
        awaited = self.sensing.awaited
        try:
            for wait_ms in self.turns(samples):
                awaited.continue_acts(node.complain)
                await self._write()
                await sleep_ms(min(wait_ms, BUSY_MS) if node.in_flight else wait_ms)
                began = ticks_ms()
                try:
                    node.poll()
                except Exception as error:
                    self._count_error(error)
                if ticks_diff(ticks_ms(), began):  # an answer that teaches takes as long as a decision
                    await sleep_ms(0)
                await self._write()
                if not remaining(self.collect_at, self.rest_ms):
                    await self._collect()
            await self._write()
            if self.reports:
                Service.report_state(self)
            awaited.continue_acts(node.complain)
            while awaited.acts:
                self.watchdog()
                await sleep_ms(BUSY_MS)
        except BaseException:  # cancelled, or Ctrl-C
            self.end()
            for _ in self.pieces:
                pass
            raise
        finally:
            awaited.cancel()

    async def _collect(self) -> None:
        """Let a board collect garbage in a part of its own: another part that had to would take longer."""
        if IS_BOARD:
            began = ticks_ms()
            gc.collect()
            self.rest_ms = RESTS * max(1, ticks_diff(ticks_ms(), began))
            self.collect_at = ticks_add(ticks_ms(), self.rest_ms)
            await sleep_ms(0)

    def save(self) -> None:
        """Leave the snapshot to _write(); the node takes no sample before."""
        self.pieces = () if self.node.policy_torn else self.keeper.saving()

    async def _write(self) -> None:
        """Write the snapshot that is due in pieces, once no decision and no offload is open: erasing flash stops a board.

        Meanwhile the node polls and decides nothing: the policy stays as it is.
        """
        if self.node.in_flight or self.sensing.sample or not (self.pieces or self.keeper.is_due()):
            return
        await self._collect()
        self.save()  # not if an answer has torn the policy
        pieces, self.pieces = self.pieces, ()
        began = ticks_ms()
        try:
            for _ in pieces:
                if not 0 <= ticks_diff(ticks_ms(), began) < SLICE_MS:
                    self.watchdog()
                    await sleep_ms(0)
                    began = ticks_ms()
        except Exception as error:
            self._count_error(error)
        finally:
            if pieces:  # cancelled: its file must be closed before end() writes the same
                pieces.close()

    def _turn(self) -> int:
        """Do a part of a turn: take commands, make a report, send it, or sense and decide."""
        if self.reports:
            self.watchdog()
            entries, self.reports = self.reports, None
            if entries is DUE:
                self.reports = state(self)
            else:
                Service.report_state(self, entries)
            return 0
        self.is_kept = not self.is_kept and not self.pieces or self.sensing.sample is not None
        if self.is_kept:
            return Service._turn(self)
        self.watchdog()
        Service._housekeeping(self)
        return BUSY_MS if self.pieces else 0

    def _housekeeping(self) -> None:
        """Do nothing here: _turn() gives it a part of its own."""

    def report_state(self, entries: "Any" = None) -> None:
        """Leave the report to the next parts of the turn."""
        self.reports = DUE
