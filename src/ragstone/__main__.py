"""`python -m ragstone` is `ragstone`."""

from ragstone.serve.cli.main import run

if __name__ == "__main__":
    run()
