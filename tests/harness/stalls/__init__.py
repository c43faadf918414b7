"""What the tests of the stall detector share: causes that are known, and how they are judged."""
