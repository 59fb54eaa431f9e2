# H2T2 Edge runtime. Import the module you need: nothing is imported here, a microcontroller loads only what it runs.
__version__ = "0.1.0"
