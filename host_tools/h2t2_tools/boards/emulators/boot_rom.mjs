// The RP2040's boot ROM is in no package. This is a table of the functions the firmware asks it for, where the chip's data sheet
// (section 2.8) puts it; each is a breakpoint, served here. erase(offset, size) and program(offset, bytes) write the flash.

const COUNT = 16384;

export class BootRom {
  constructor(mcu, flash) {
    this.mcu = mcu;
    this.served = [];
    this.bytes = new Uint8Array(COUNT);
    this.view = new DataView(this.bytes.buffer);
    this.at = 0x100;
    const reg = (i) => mcu.core.registers[i] >>> 0;
    const answer = (value) => { mcu.core.registers[0] = value >>> 0; };
    const copy = () => { for (let i = 0, to = reg(0), from = reg(1), n = reg(2); i < n; i++) mcu.writeUint8(to + i, mcu.readUint8(from + i)); };
    const fill = () => { for (let i = 0, to = reg(0), value = reg(1) & 255, n = reg(2); i < n; i++) mcu.writeUint8(to + i, value); };
    const functions = {
      MC: copy, C4: copy, MS: fill, S4: fill, // memcpy, memset
      P3: () => answer(ones(reg(0))), R3: () => answer(reversed(reg(0))),
      L3: () => answer(Math.clz32(reg(0))), T3: () => answer(reg(0) ? 31 - Math.clz32(reg(0) & -reg(0)) : 32),
      IF() {}, EX() {}, FC() {}, CX() {}, WV() {}, // the flash chip leaves and enters its mode of being read as memory
      RE: () => flash.erase(reg(0), reg(1)),
      RP: () => flash.program(reg(0), Uint8Array.from({ length: reg(2) }, (_, i) => mcu.readUint8(reg(1) + i))),
      UB: () => flash.bootloader(),
    };
    const table = Object.entries(functions).map(([name, serve]) => [code(name), this.stub(serve)]);
    const find = this.stub(() => answer((table.find(([wanted]) => wanted === (reg(1) & 0xffff)) ?? [0, 0])[1]));
    const list = this.at;
    for (const pair of table) for (const value of pair) { this.view.setUint16(this.at, value, true); this.at += 2; }
    this.bytes.set([0x4d, 0x75, 1, 3], 0x10); // "Mu", 1, version 3
    [list, list, find].forEach((value, n) => this.view.setUint16(0x14 + 2 * n, value, true));
    mcu.onBreak = (n) => this.served[n]();
  }

  // A function of the ROM: "breakpoint n", "return"
  stub(serve) {
    this.view.setUint16(this.at, 0xbe00 | (this.served.push(serve) - 1), true);
    this.view.setUint16(this.at + 2, 0x4770, true);
    this.at += 4;
    return (this.at - 4) | 1;
  }

  get words() { return new Uint32Array(this.bytes.buffer); }
}

const code = (name) => name.charCodeAt(0) | (name.charCodeAt(1) << 8);

function ones(value) {
  let n = 0;
  for (; value; value >>>= 1) n += value & 1;
  return n;
}

function reversed(value) {
  let made = 0;
  for (let i = 0; i < 32; i++, value >>>= 1) made = (made << 1) | (value & 1);
  return made;
}
