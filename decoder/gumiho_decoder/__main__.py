"""`python -m gumiho_decoder`: the `gumiho` command, as torchrun starts it."""

from gumiho_decoder.commands.main import main

if __name__ == "__main__":
    main()
