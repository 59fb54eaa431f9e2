"""A firmware that comes by update to an ESP32, on a Partition with the rules of ports/esp32/esp32_partition.c and of IDF's
bootloader, with and without power cuts."""

import sys
from types import SimpleNamespace

import pytest
from node_updates import FAULTS, Resetting, Restarted, after_each_cut, after_each_fault, assert_says, service

from h2t2.node import update
from h2t2.node.package import DETAILS, FIRMWARE, SIGNED
from h2t2_tools.common.errors import UserError
from h2t2_tools.fleet.update import signed_package
from h2t2_tools.fleet.update.rollout_options import PackageOptions

CHIP = 9  # an ESP32-S3
ESP_ERR_OTA_VALIDATE_FAILED, ESP_ERR_NOT_SUPPORTED = -5379, -261
NEW, PENDING, VALID, ABORTED = "new", "pending", "valid", "aborted"  # esp_ota_img_states_t


def image(name, chip=CHIP):
    head = bytes([0xE9, 3, 2, 0x3F]) + bytes(8) + chip.to_bytes(2, "little")
    return head + name.encode() * 1500 + b"end"


def is_whole(content):
    return content[0] == 0xE9 and content.rstrip(b"\xff").endswith(b"end")


class Chip:
    """Flash with two partitions for applications, and its bootloader.

    Attributes:
        disk: counts writes, or None.
        broken: names of images that crash before anything of ours runs.
    """

    SIZE = 5 * 4096

    def __init__(self, rolls_back=True, slots=2):
        self.rolls_back, self.slots, self.disk, self.broken = rolls_back, slots, None, ()
        self.flash = [bytearray(b"\xff" * self.SIZE) for _ in range(2)]
        self.flash[0][: len(image("old"))] = image("old")
        self.state, self.boot = [VALID, VALID], 0
        self.start()

    def start(self):
        """What the bootloader does at a reset."""
        while True:
            self.state = [ABORTED if state == PENDING else state for state in self.state]
            if self.state == [ABORTED, ABORTED]:
                self.boot = 0
            elif self.state[self.boot] == ABORTED or not is_whole(self.flash[self.boot]):
                self.boot = 1 - self.boot
            if self.state[self.boot] == NEW:
                self.state[self.boot] = PENDING if self.rolls_back else VALID
            self.running = self.boot
            if self.name() not in self.broken:
                return

    def choose(self, n):
        """Start that partition at the next reset."""
        self.boot = n
        self.state[n] = NEW

    def name(self):
        return self.flash[self.running][14:].split(b"end")[0][:3].decode()

    def do(self, operation, *arguments):
        """Do an operation on the flash, unless it fails."""
        return self.disk.do(operation, *arguments) if self.disk else operation(*arguments)

    def module(self):
        chip = self

        class Partition:
            BOOT, RUNNING = 0, 1

            def __init__(self, which):
                if which in ("ota_0", "ota_1"):
                    self.n = int(which[-1])
                elif which in (self.BOOT, self.RUNNING):
                    self.n = chip.running if which == self.RUNNING else chip.boot
                else:
                    raise OSError(2, "ENOENT")

            def info(self):
                return 0, 16 + self.n, 0x10000 + self.n * chip.SIZE, chip.SIZE, f"ota_{self.n}", False

            def get_next_update(self):
                if chip.slots < 2:
                    raise OSError(2, "ENOENT")
                return Partition(f"ota_{1 - self.n}")

            def readblocks(self, n, buffer):
                buffer[:] = chip.flash[self.n][n * 4096 : n * 4096 + len(buffer)]

            def writeblocks(self, n, buffer):
                assert self.n != chip.running and len(buffer) % 4096 == 0  # it erases whole blocks first
                place = slice(n * 4096, n * 4096 + len(buffer))
                chip.flash[self.n][place] = b"\xff" * len(buffer)
                chip.do(chip.flash[self.n].__setitem__, place, bytes(buffer))

            def set_boot(self):
                if not is_whole(chip.flash[self.n]):
                    raise OSError(ESP_ERR_OTA_VALIDATE_FAILED, "ESP_ERR_OTA_VALIDATE_FAILED")
                chip.do(chip.choose, self.n)

            @classmethod
            def mark_app_valid_cancel_rollback(cls):
                if not chip.rolls_back:
                    raise OSError(ESP_ERR_NOT_SUPPORTED, "ESP_ERR_NOT_SUPPORTED")
                chip.do(chip.state.__setitem__, chip.running, VALID)

        return SimpleNamespace(Partition=Partition)


class Board(Resetting):
    def __init__(self, folder, key, patched, chip=None):
        self.chip = chip or Chip()
        patched.setitem(sys.modules, "esp32", self.chip.module())
        patched.delitem(sys.modules, "h2t2.node.partition", raising=False)
        super().__init__(folder, key, patched)

    def hold_flash(self, disk):
        self.chip.disk = disk

    def start(self):
        for _ in range(12):
            self.chip.start()
            try:
                return super().start()
            except Restarted:
                update.UNSAVED.clear()
        raise AssertionError(f"no firmware stays: {self.log_lines}")


@pytest.fixture
def device(key, tmp_path, monkeypatch):
    return Board(tmp_path, key, monkeypatch)


def firmware(key, folder, name="new", counter=7, chip=CHIP):
    path = folder / f"{name}.bin"
    path.write_bytes(image(name, chip))
    return signed_package.firmware(path, key.private, PackageOptions(counter=counter, trial=50, trial_time=0))


def test_a_firmware_is_tried_and_kept(device, key, tmp_path):
    made = firmware(key, tmp_path)
    assert made.to_json()["chip"] == CHIP
    device.install(made)
    assert device.chip.name() == "new" and device.chip.state[1] == PENDING
    report = device.updates.report()
    assert (report["trial"], report["runtime"], report["runtime_id"]) == (50, 7, f"{made.id:08x}")
    device.updates.look(service())
    assert device.updates.report()["said"].startswith("kept") and device.chip.state[1] == VALID
    device.start()
    assert device.chip.name() == "new"
    device.keep(firmware(key, tmp_path, "xyz", 8))  # the next one goes where the first was
    assert device.start() and device.chip.name() == "xyz" and device.chip.running == 0


@pytest.mark.parametrize("chip", [CHIP, 0])
def test_a_board_keeps_no_code_of_runtimes_in_memory(key, tmp_path, monkeypatch, chip):
    """After a start, after a package that is taken or refused, and after a trial."""
    monkeypatch.setattr("h2t2.node.update.IS_BOARD", True)
    monkeypatch.setattr("h2t2.modules.IS_BOARD", True)
    for name, module in [*sys.modules.items()]:
        if name.startswith("h2t2.node."):  # for the tests after this one
            monkeypatch.setitem(sys.modules, name, module)
            monkeypatch.setattr(name, module)

    def modules():
        return {"h2t2.node.runtime", "h2t2.node.partition"} & sys.modules.keys()

    device = Board(tmp_path, key, monkeypatch)
    assert not modules()
    made = firmware(key, tmp_path, chip=chip)
    offset = 0
    while offset < SIGNED:
        answer, _ = device.take(made.chunk(offset))
        offset = answer["next"] or SIGNED
    assert answer["ok"] == bool(chip) and not modules()
    if chip:
        device.install(made, offset)
        assert device.chip.name() == "new" and not modules()
        device.updates.look(service())
        assert device.updates.report()["said"].startswith("kept") and not modules()


@pytest.mark.parametrize("how", ["it does not start", "its node is worse", "it starts and starts"])
def test_a_firmware_that_fails_goes_back(device, key, tmp_path, how):
    (tmp_path / "state.0").write_bytes(b"learned")
    assert device.bring(firmware(key, tmp_path))[1]
    device.chip.broken = ("new",) if how == "it does not start" else ()
    device.start()
    if how == "its node is worse":
        (tmp_path / "state.0").write_bytes(b"in a form that only the new one reads")
        assert device.updates.look(service(errors=3))
    for _ in range(3):
        device.start()
    assert device.chip.name() == "old" and device.updates.report()["said"].startswith("back: ")
    assert device.updates.report()["runtime"] == 0 and (tmp_path / "state.0").read_bytes() == b"learned"
    assert "7 has been tried here already" in device.bring(firmware(key, tmp_path))[0]["why"]
    device.chip.broken = ()
    device.keep(firmware(key, tmp_path, counter=8))


@pytest.mark.parametrize(
    "chip, made_for, why",
    [
        (Chip(), 0, "a firmware for chip 0; this is chip 9"),
        (Chip(slots=1), CHIP, "no second partition"),
        (Chip(rolls_back=False), CHIP, "a bootloader that does not return"),
    ],
)
def test_a_firmware_for_another_chip_or_without_a_way_back_is_refused_before_it_comes(
    key, tmp_path, monkeypatch, chip, made_for, why
):
    device = Board(tmp_path, key, monkeypatch, chip)
    assert why in device.bring(firmware(key, tmp_path, chip=made_for))[0]["why"] and not (tmp_path / "state.part").exists()


def test_a_firmware_larger_than_its_partition_is_refused(device, key, tmp_path, monkeypatch):
    monkeypatch.setattr(Chip, "SIZE", 4096)
    assert "the partition has 4096" in device.bring(firmware(key, tmp_path))[0]["why"]


def test_an_image_flashed_by_cable_is_in_force(device, key, tmp_path):
    device.keep(firmware(key, tmp_path))
    device.chip.boot = 0  # esptool writes the first partition and erases the choice
    device.start()
    assert device.chip.name() == "old" and device.updates.report()["runtime"] == 0 and "flashed anew" in device.log_lines[-1]


def test_a_package_without_an_image_is_refused(device, key):
    parts, options = {DETAILS: b'{"seconds": 0}'}, PackageOptions(counter=7, trial=50, trial_time=0)
    answer, again = device.bring(signed_package._packed(key.private, FIRMWARE, CHIP, parts, options, {}))
    assert not again and "lacks a firmware" in answer["why"]
    device.start()
    assert device.chip.name() == "old"


def test_what_is_no_image_is_not_signed(key, tmp_path):
    (tmp_path / "x.bin").write_bytes(bytes(100))
    with pytest.raises(UserError, match="begins with 0xE9"):
        signed_package.firmware(tmp_path / "x.bin", key.private, PackageOptions())


def test_a_power_cut_at_every_operation(key, tmp_path, monkeypatch):
    """A whole firmware runs afterwards."""

    def is_new(device):
        assert device.chip.name() == "new"

    made, begin = firmware(key, tmp_path), lambda folder: Board(folder, key, monkeypatch)
    for device in after_each_cut(tmp_path, monkeypatch, begin, made, is_new):
        assert device.chip.name() in ("old", "new")


def assert_says_what_it_does(device):
    assert_says(device, device.chip.name() == "new", 7)


@pytest.mark.parametrize("good", [True, False], ids=["kept", "back"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_every_operation(key, tmp_path, monkeypatch, fault, good):
    """Of files and of the flash; a read-only or full file system is none of the flash's."""
    made, begin = firmware(key, tmp_path), lambda folder: Board(folder, key, monkeypatch)
    assert list(after_each_fault(tmp_path, monkeypatch, fault, begin, made, good, assert_says_what_it_does))
