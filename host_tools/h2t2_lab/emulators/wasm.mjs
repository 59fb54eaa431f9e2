// Runs a script in MicroPython's WebAssembly build: node wasm.mjs MODULE SCRIPT FILES...
// The build sees no file of ours: those the script imports are copied into its own file system, from their package's folder on.
import { readFileSync } from "fs";

const [module, script, ...files] = process.argv.slice(2);
const { loadMicroPython } = await import(module);
const mp = await loadMicroPython({ heapsize: 8 << 20, stdout: (line) => console.log(line) });
for (const file of files) {
  const start = file.lastIndexOf("/h2t2/");
  const path = start < 0 ? "/" + file.split("/").pop() : file.slice(start);
  mp.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")) || "/");
  mp.FS.writeFile(path, readFileSync(file));
}
mp.runPython("import sys; sys.path.append('/')");
mp.runPython(readFileSync(script, "utf8"));
