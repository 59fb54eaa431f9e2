"""Host tools of H2T2 Edge: everything that runs on a desktop. Imports `h2t2`; `h2t2` never imports it."""

__version__ = "0.1.0"
