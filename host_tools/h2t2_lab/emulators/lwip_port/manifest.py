include("$(MPY_DIR)/extmod/asyncio")  # type: ignore[name-defined] # noqa: F821
