"""Objects that packs exchange with StackStorm."""
