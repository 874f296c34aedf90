"""What ends a report: one line for stderr, and the exit status that goes with it."""

BAD_INPUT, UNAVAILABLE, NOTHING = 2, 3, 4


class Problem(Exception):
    def __init__(self, message, status=BAD_INPUT):
        super().__init__(message)
        self.status = status
