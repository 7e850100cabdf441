"""`python -m sixjars`."""

from sixjars.cli import main

if __name__ == "__main__":
    main()
