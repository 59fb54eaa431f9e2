"""Host tools of H2T2 Edge: everything that runs on a desktop. Imports `h2t2`; `h2t2` never imports it."""

from h2t2 import __version__ as __version__
