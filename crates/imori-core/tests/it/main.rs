//! The broker's verbs in a world of one thread.

mod restored;
mod publish;
mod reports;
mod subscribe;
mod inbox;
mod consume;
mod commit;
mod dead_letter;
mod delayed;
mod once;
mod durable;
mod left_in_journal;
mod levels;
mod large;
mod lost;
mod returned;
mod pages;
mod press;
mod scarce;
mod anything;
mod lifetime;
mod sessions;
mod limited;
mod rights;
