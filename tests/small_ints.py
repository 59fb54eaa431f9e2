"""Sources whose every integer is checked against the 31 bits of MicroPython's small ints."""

import ast

LOW, HIGH = -(2**30), 2**30 - 1


class Watched(ast.NodeTransformer):
    """Passes the result of every arithmetic operation through `_watch`, and turns x += y into x = _watch(x + y)."""

    def _wrap(self, node):
        return ast.copy_location(ast.Call(ast.Name("_watch", ast.Load()), [node], []), node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        assert not isinstance(node.op, (ast.Div, ast.Pow)), "true division and powers are not for the core"
        return node if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str) else self._wrap(node)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self._wrap(node) if isinstance(node.op, (ast.USub, ast.Invert)) else node

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        value = self._wrap(ast.BinOp(load, node.op, node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Constant(self, node):
        assert not isinstance(node.value, float), "floats are not for the core"
        return self._wrap(node) if type(node.value) is int else node


def run_watched(source, module, file="watched.py"):
    """Run source in a module. Return the counters that its code updates: integers, the smallest and the largest of them."""
    counters = {"count": 0, "low": 0, "high": 0}

    def watch(value):
        if type(value) is int:
            assert LOW <= value <= HIGH, f"{value} does not fit a small int"
            counters["count"] += 1
            counters["low"], counters["high"] = min(counters["low"], value), max(counters["high"], value)
        else:
            assert not isinstance(value, float)
        return value

    module._watch = watch
    exec(compile(ast.fix_missing_locations(Watched().visit(ast.parse(source))), file, "exec"), module.__dict__)
    return counters
