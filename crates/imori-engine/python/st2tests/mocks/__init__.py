"""Stand-ins for what the engine gives actions and sensors."""
