"""What a HIL test says it needs of a board."""


def needs(*features):
    """A test runs only on boards with these features (boards.toml)."""

    def mark(test):
        test.needs = features
        return test

    return mark
