// The Pico's flash chip: its bytes live in a file, so that they outlive the emulator. Every erase of a sector and every program of
// a page is an operation; power can be cut before, in the middle of or after the n-th of them.
import fs from 'node:fs';

const SECTOR = 4096, PAGE = 256, SIZE = 2 << 20; // bytes: of a W25Q16JV, which a Pico carries
const NANOS = { erase: 45e6, program: 0.4e6 }; // its typical times; no code runs from the chip meanwhile

export class PowerCut extends Error {}
export class Bootloader extends Error {}

export class FlashChip {
  // firmware: written over the file's first bytes, as putting a new firmware on does
  constructor(path, firmware) {
    this.file = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
    this.bytes = new Uint8Array(SIZE).fill(0xff);
    fs.readSync(this.file, this.bytes, 0, SIZE, 0);
    this.bytes.set(firmware, 0);
    fs.writeSync(this.file, this.bytes, 0, SIZE, 0);
    this.operations = 0; // since the emulator started
    this.cut = null; // {at, when}
    this.record = null; // of operations, where one is wanted
  }

  // Another content, as swapping the chip does
  load(path) {
    this.bytes.fill(0xff);
    this.bytes.set(fs.readFileSync(path).subarray(0, SIZE));
    fs.writeSync(this.file, this.bytes, 0, SIZE, 0);
  }

  attach(mcu) {
    this.mcu = mcu;
    mcu.flash.set(this.bytes, 0);
  }

  erase(offset, size) {
    for (let at = offset; at < offset + size; at += SECTOR) {
      this.operation('erase', at, new Uint8Array(Math.min(SECTOR, offset + size - at)).fill(0xff));
    }
  }

  program(offset, data) {
    for (let at = 0; at < data.length; at += PAGE) {
      const page = data.subarray(at, at + PAGE);
      this.operation('program', offset + at, page.map((value, i) => value & this.bytes[offset + at + i]));
    }
  }

  operation(kind, offset, made) {
    this.operations += 1;
    if (this.record) this.record.push({ kind, offset, data: Buffer.from(made).toString('base64') });
    const cut = this.cut && this.operations === this.cut.at ? this.cut.when : null;
    if (cut === 'before') this.lose(kind, offset, cut);
    if (cut === 'middle') made = made.subarray(0, made.length >> 1);
    this.bytes.set(made, offset);
    this.mcu.flash.set(made, offset);
    fs.writeSync(this.file, made, 0, made.length, offset);
    if (cut) this.lose(kind, offset, cut);
    this.mcu.clock.tick(NANOS[kind]);
  }

  lose(kind, offset, when) {
    this.cut = null;
    throw Object.assign(new PowerCut(), { told: { event: 'cut', operation: this.operations, kind, offset, when } });
  }

  bootloader() { throw new Bootloader(); }
}
