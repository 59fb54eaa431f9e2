# The one way to start another Python. It does not look for modules in the current folder, where a stranger's token.py may lie.
import sys

HAS_SAFE_PATH = sys.version_info >= (3, 11)
MODULE = "import runpy; runpy.run_module(%r, run_name='__main__', alter_sys=True)"


def python(option: str, code: str, *arguments: str) -> list[str]:
    """The command of a Python that runs a module or a text.

    Args:
        option: "-m" or "-c".
        code: the module's name, or the text.
        arguments: what follows on its command line.
    """
    if HAS_SAFE_PATH:
        return [sys.executable, "-P", option, code, *arguments]
    text = MODULE % code if option == "-m" else code
    return [sys.executable, "-c", "import sys; sys.path.remove(''); " + text, *arguments]
