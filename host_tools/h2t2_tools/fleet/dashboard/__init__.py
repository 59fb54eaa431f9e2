"""`h2t2 dashboard`: a fleet as a web page, with NiceGUI, which ships all that a browser needs."""
