# Names of arrays by what an item is, for annotations. Type checkers and the compiler for boards read them; nothing runs this.
from array import array

Int32s = array[int]  # array("i")
Int16s = array[int]  # array("h")
UInt16s = array[int]  # array("H")
UInt8s = array[int] | bytes | bytearray | memoryview  # array("B")
PackedInt32s = UInt8s  # numbers of a bundle: an array("i"), or for machine code their bytes, at any address
PackedUInt16s = UInt8s  # likewise array("H")
