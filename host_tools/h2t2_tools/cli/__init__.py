"""The command line `h2t2`: options, reports and help. The packages below do the work of the commands."""
