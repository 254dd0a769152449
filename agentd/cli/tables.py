"""Tables for people."""

import sys

from rich.console import Console
from rich.table import Table

__all__ = ["print_table"]

# Columns where there is no terminal: what reads a pipe wants whole words.
PIPE_WIDTH = 400


def print_table(table: Table) -> None:
    """Print a table, its texts as they are."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    Console(highlight=False, markup=False, width=width).print(table)
