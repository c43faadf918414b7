"""Names and numbers that packs share with StackStorm."""
