"""The mark of a HIL test for the features that it needs of a board."""


def needs(*features):
    """Run a test only on boards with these features (boards.toml)."""

    def mark(test):
        test.needs = features
        return test

    return mark
