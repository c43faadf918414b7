//! The broker's verbs in a world of one thread.

mod world;
mod publish;
mod subscribe;
mod inbox;
mod consume;
mod commit;
mod dead_letter;
mod lifetime;
mod limited;
mod rights;
