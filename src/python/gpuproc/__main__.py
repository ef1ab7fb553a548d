"""The program ``gpuproc``."""

import os
import sys

from gpuproc._gpuproc import main as run


def main():
    """Run the command line of this process."""
    file = os.path.abspath(sys.argv[0])
    sys.exit(run(sys.executable, [file], ["gpuproc", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
