//! The simulator's command line: runs seeds and prints the properties they break.

#![allow(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::process::ExitCode;

use imori_sim::{Bug, Goodbyes, TraceReader, repeat_command, run_seed};

const USAGE: &str = "usage: imori-sim --seeds A..B | --seed N [--trace] [--bug NAME]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let is_traced = arguments.iter().any(|argument| argument == "--trace");
    let trace = is_traced.then_some((|line| println!("{line}")) as TraceReader);
    let bug =
        value("--bug").and_then(|name| Bug::ALL.into_iter().find(|(bug, _)| format!("{bug:?}") == name));
    let seeds = match (value("--seed"), value("--seeds")) {
        (Some(seed), _) => seed.parse().ok().map(|seed: u64| seed..seed.saturating_add(1)),
        (None, Some(range)) => {
            range.split_once("..").and_then(|(first, end)| Some(first.parse().ok()?..end.parse().ok()?))
        }
        (None, None) => None,
    };
    let Some(seeds) = seeds else {
        println!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut broken = 0_u64;
    let (mut steps, mut points, mut shadows, mut pending, mut ends_with_pending) = (0, 0, 0, 0_u64, 0);
    let mut goodbyes = Goodbyes::default();
    let runs = seeds.end.saturating_sub(seeds.start);
    for seed in seeds {
        let outcome = run_seed(seed, bug.map(|(bug, _)| bug), trace);
        steps += outcome.steps;
        points += outcome.points;
        shadows += outcome.shadows;
        pending += u64::from(outcome.has_pending_dead_letters);
        ends_with_pending += outcome.ends_with_pending;
        goodbyes.add(&outcome.goodbyes);
        if let Some(violation) = outcome.violation {
            broken += 1;
            println!("seed {seed}: {violation}\n  {}", repeat_command(seed));
        } else if is_traced {
            println!("seed {seed}: hash {:016x}", outcome.hash);
        }
    }
    println!("{runs} seeds, {steps} decisions, {points} ends of the broker looked at, {broken} broken");
    println!("compared with a restart {shadows} times");
    println!(
        "dead letters waited for room in {pending} seeds, and while the broker ended {ends_with_pending} times"
    );
    println!("{goodbyes}");
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
