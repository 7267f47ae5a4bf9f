"""The program `melba` that the package carries."""

import os
import sys
from pathlib import Path

PATH = Path(__file__).with_name("bin") / "melba"


def main():
    """Becomes the program, with the arguments of this one."""
    os.execv(PATH, ["melba", *sys.argv[1:]])
