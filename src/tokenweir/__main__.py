"""`python -m tokenweir` is `tokenweir`."""

from tokenweir.cli import main

main(prog_name="tokenweir")
