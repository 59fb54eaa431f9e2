// node rp2040.mjs RP2040JS PROGRAM: runs the program, a binary of the flash chip's content, on an emulated RP2040 until it ends.
// Its semihosting: 4 prints a text, 24 ends, 256 returns the cycles so far.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [library, program] = process.argv.slice(2);
const { RP2040 } = await import(pathToFileURL(path.join(library, 'dist/esm/index.js')).href);
const mcu = new RP2040();
const { core } = mcu;
const START = 0x10000000;
mcu.flash.set(fs.readFileSync(program));
core.VTOR = START;
core.SP = mcu.readUint32(START);
core.PC = mcu.readUint32(START + 4) & ~1;
let ended = false;
mcu.onBreak = () => {
  const [operation, argument] = [core.registers[0], core.registers[1] >>> 0];
  if (operation === 24) ended = true;
  if (operation === 256) core.registers[0] = core.cycles;
  if (operation === 4) for (let at = argument, byte; (byte = mcu.readUint8(at)); at++) process.stdout.write(String.fromCharCode(byte));
};
while (!ended) core.executeInstruction();
