//! STOMP 1.0, 1.1 and 1.2 as a state machine: bytes in, bytes and commands out.
