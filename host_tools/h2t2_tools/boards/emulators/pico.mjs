// node pico.mjs RP2040JS FIRMWARE FLASH SERIAL: an emulated Raspberry Pi Pico. RP2040JS: the npm package's folder. FLASH: the file
// with the flash chip's content. SERIAL: the number of an open socket, its USB serial line; commands come as JSON lines on standard input,
// answers and events leave as JSON lines on standard output. host_tools/h2t2_tools/boards/emulators/pico.py is at the other end.
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';
import { BootRom } from './boot_rom.mjs';
import { Bootloader, FlashChip, PowerCut } from './flash_chip.mjs';

const [library, firmware, image, line] = process.argv.slice(2);
const module = (name) => import(pathToFileURL(path.join(library, 'dist/esm', name)).href);
const { RP2040, USBCDC, ConsoleLogger, LogLevel, GPIOPinState } = await module('index.js');

const START = 0x10000100; // the firmware's vectors, behind the second-stage loader
const SLICE = 20000; // instructions between two looks at what came from outside
const DTR = 1, RTS = 2;
const SENT = 1 << 5; // a UART's interrupt
const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');

class Restart extends Error {}

class Pico {
  constructor(serial, flash) {
    this.serial = serial;
    this.flash = flash;
    this.cycles = 0; // of starts that are over
    this.busyMs = 0; // of this machine, while the chip computed
    this.busyCycles = 0;
    this.paced = true;
    this.open = false; // somebody has the serial line open
    this.inputs = new Map(); // pin -> level
    this.watched = new Set();
    this.analogue = new Map(); // channel -> values, one a conversion, the last one for good
    this.next = null; // slice, of setImmediate
    this.rests = null; // until this timer ends, of setTimeout
    this.on = false;
  }

  // cause: what the watchdog's register says of the start, 0: power
  start(cause = 0, scratch = null) {
    this.stop();
    this.mcu = new RP2040();
    this.clock = this.mcu.clock;
    this.mcu.logger = new ConsoleLogger(LogLevel.Error);
    const rom = new BootRom(this.mcu, this.flash);
    this.mcu.loadBootrom(rom.words); // resets the chip, which fills its flash: that comes after
    this.flash.attach(this.mcu);
    this.dog = this.mcu.peripherals[0x40058];
    this.dog.reason = cause;
    if (scratch) this.dog.scratchData.set(scratch);
    this.dog.onWatchdogTrigger = () => { throw new Restart(); };
    this.line();
    this.wires();
    for (const [pin, level] of this.inputs) this.mcu.gpio[pin].setInputValue(level);
    for (const pin of this.watched) this.watch(pin);
    this.mcu.adc.onADCRead = (channel) => {
      const values = this.analogue.get(channel);
      if (values) this.mcu.adc.channelValues[channel] = values.length > 1 ? values.shift() : values[0];
      this.mcu.adc.currentChannel = channel;
      this.mcu.adc.sampleAlarm.schedule(this.mcu.adc.sampleTime * 1000);
    };
    const { core } = this.mcu;
    core.VTOR = START;
    core.SP = this.mcu.readUint32(START);
    core.PC = this.mcu.readUint32(START + 4) & ~1;
    this.on = true;
    this.rebase();
    this.soon();
  }

  stop() {
    if (this.on) this.cycles += this.chip();
    this.on = false;
    clearImmediate(this.next);
    clearTimeout(this.rests);
    this.next = this.rests = null;
  }

  // USB serial: a packet is read when there is one, as a host's polls do; unread output waits here
  line() {
    this.cdc = new USBCDC(this.mcu.usbCtrl);
    this.incoming = [];
    this.wanted = 0; // bytes that the chip is ready to take now
    this.enumerated = false;
    this.mcu.usbCtrl.onEndpointRead = (endpoint, size) => {
      if (endpoint !== this.cdc.outEndpoint) return;
      this.wanted = size;
      this.give();
    };
    this.cdc.onSerialData = (data) => this.serial.write(Buffer.from(data));
    this.cdc.onDeviceConnected = () => {
      this.enumerated = true;
      this.modem();
      tell({ event: 'ready' });
    };
  }

  // The transmitter of each UART goes to the other's receiver, and a byte takes no time. rp2040js reports an empty transmitter
  // again and again, on which MicroPython waits for ever; a chip reports it once
  wires() {
    for (const [n, uart] of this.mcu.uart.entries()) {
      uart.checkInterrupts = () => this.mcu.setInterrupt(uart.irq, !!(uart.interruptStatus & uart.interruptMask));
      uart.onByte = (byte) => {
        this.mcu.uart[1 - n].feedByte(byte);
        uart.interruptStatus |= SENT;
        uart.checkInterrupts();
      };
    }
  }

  modem() {
    if (this.on && this.enumerated) this.cdc.cdcSetControlLineState(this.open ? DTR | RTS : 0);
  }

  feed(data) {
    if (!this.on) return;
    for (const byte of data) this.incoming.push(byte);
    this.give();
  }

  give() {
    if (!this.wanted || !this.incoming.length) return;
    const packet = Uint8Array.from(this.incoming.splice(0, this.wanted));
    this.wanted = 0;
    this.mcu.usbCtrl.endpointReadDone(this.cdc.outEndpoint, packet);
    this.wake();
  }

  watch(pin) {
    this.mcu.gpio[pin].addListener((state) => {
      if (state === GPIOPinState.High || state === GPIOPinState.Low) {
        tell({ event: 'pin', pin, level: state === GPIOPinState.High ? 1 : 0, cycles: this.cycles + this.chip() });
      }
    });
  }

  chip() { return Math.round(this.clock.nanos * this.mcu.clkSys / 1e9); }

  soon() { this.next = setImmediate(() => this.slice()); }

  // From here on chip and machine run abreast: the chip's time must not outrun the time in which somebody may answer it
  rebase() { this.base = this.clock.nanos - performance.now() * 1e6; }

  ahead() { return this.clock.nanos - (this.base + performance.now() * 1e6); }

  wake() {
    if (!this.rests) return;
    clearTimeout(this.rests);
    this.rested();
  }

  // The time that has passed while the chip slept, but not beyond what it sleeps for
  catchUp() {
    const passed = Math.min(-this.ahead(), this.clock.nanosToNextAlarm);
    if (passed > 0) this.clock.tick(passed);
  }

  slice() {
    const began = performance.now(), { core } = this.mcu, { clock } = this, nanos = 1e9 / this.mcu.clkSys;
    const from = core.cycles;
    try {
      for (let n = 0; n < SLICE; n++) {
        if (core.waiting) {
          const left = clock.nanosToNextAlarm;
          if (this.paced) {
            if (-this.ahead() > 1e6) this.rebase(); // it was slower than the chip for a while: no rush afterwards
            const wait = (left || 1e9) + this.ahead();
            if (wait > 0) return this.rest(wait / 1e6);
          }
          clock.tick(left);
          n += 100;
        } else {
          clock.tick(core.executeInstruction() * nanos);
        }
      }
      this.soon();
    } catch (error) {
      this.ended(error);
    } finally {
      this.busyMs += performance.now() - began;
      this.busyCycles += core.cycles - from;
    }
  }

  rest(ms) {
    this.rests = setTimeout(() => this.rested(), ms);
  }

  rested() {
    this.rests = null;
    try {
      this.catchUp();
      this.soon();
    } catch (error) {
      this.ended(error);
    }
  }

  ended(error) {
    if (error instanceof Restart) {
      const { reason, scratchData } = this.dog;
      tell({ event: 'reset', by: reason === 1 ? 'watchdog' : 'software' });
      this.start(reason, scratchData);
    } else if (error instanceof PowerCut) {
      this.stop();
      tell(error.told);
    } else if (error instanceof Bootloader) {
      this.stop();
      tell({ event: 'bootloader' });
    } else {
      throw error;
    }
  }
}

const flash = new FlashChip(image, fs.readFileSync(firmware));
const serial = new net.Socket({ fd: Number(line) });
const pico = new Pico(serial, flash);
serial.on('data', (data) => pico.feed(data));
serial.on('close', () => process.exit(0));
process.stdin.on('end', () => process.exit(0));

const COMMANDS = {
  power({ on }) { if (on) pico.start(); else pico.stop(); },
  reset() { pico.start(); },
  open({ on }) { pico.open = on; pico.modem(); pico.wake(); },
  pace({ on }) { pico.paced = on; if (pico.on) { pico.rebase(); pico.wake(); } },
  cut({ after, when }) { flash.cut = { at: flash.operations + after, when }; },
  record({ on }) {
    const made = flash.record ?? [];
    flash.record = on ? [] : null;
    return { operations: made };
  },
  load({ path: file }) { flash.load(file); },
  pin({ pin, level }) {
    pico.inputs.set(pin, Boolean(level));
    if (pico.on) { pico.mcu.gpio[pin].setInputValue(Boolean(level)); pico.wake(); }
  },
  watch({ pin }) {
    if (!pico.watched.has(pin)) { pico.watched.add(pin); if (pico.on) pico.watch(pin); }
    return { level: pico.on && pico.mcu.gpio[pin].value === GPIOPinState.High ? 1 : 0 };
  },
  adc({ channel, values }) { pico.analogue.set(channel, values); },
  time() {
    const cycles = pico.cycles + (pico.on ? pico.chip() : 0);
    const slower = pico.busyCycles ? pico.busyMs / 1e3 / (pico.busyCycles / 125e6) : 0;
    return { cycles, seconds: pico.on ? pico.clock.nanos / 1e9 : 0, slower, operations: flash.operations, on: pico.on };
  },
};

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const command = JSON.parse(line);
  tell({ id: command.id, ...COMMANDS[command.do](command) });
});
