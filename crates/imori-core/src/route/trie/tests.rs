use proptest::prelude::*;

use super::*;
use crate::id::QueueId;
use crate::limits::SUBJECT_TOKENS_MAX;
use crate::route::arguments::Arguments;
use crate::route::pattern::is_match;
use crate::route::target::Target;

const SEED: Seed = Seed(1);

fn bound(number: u32) -> Bound {
    Bound::new(&Target::Queue(QueueId { slot: number, generation: 0 }), None, &Arguments::default())
}

/// The numbers of the bindings found, and the number of looks.
fn found(trie: &Trie, subject: &str) -> (Vec<u32>, usize) {
    let (numbers, looks) = looked_at(trie, subject);
    (numbers, looks.count)
}

/// The numbers of the bindings found, and the looks.
fn looked_at(trie: &Trie, subject: &str) -> (Vec<u32>, Looks) {
    let mut numbers = Vec::new();
    let looks = trie.matches(SEED, subject.as_bytes(), &mut |targets| {
        targets.for_each(&mut |bound| match bound.target {
            Target::Queue(id) => numbers.push(id.slot),
            _ => panic!("the tests bind queues only"),
        });
    });
    numbers.sort_unstable();
    (numbers, looks)
}

/// Few words, so that patterns share steps and match often.
fn words(
    choices: &'static [&'static str],
    separator: &'static str,
    max: usize,
) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(choices), 1..=max).prop_map(move |words| words.join(separator))
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    let wild = &["a", "b", "*", "#", "*", "#", "_INBOX"][..];
    let amqp = words(wild, ".", 7)
        .prop_filter_map("has too many floating steps", |text| Pattern::amqp(text.as_bytes()).ok());
    let nats = (words(&["a", "b", "*", "$x"], ".", 5), any::<bool>()).prop_map(|(text, goes_on)| {
        let text = if goes_on { text + ".>" } else { text };
        Pattern::nats(text.as_bytes()).unwrap()
    });
    let mqtt = (words(&["a", "b", "+", "", "$x"], "/", 5), any::<bool>()).prop_map(|(text, goes_on)| {
        let text = if goes_on { text + "/#" } else { text + "/a" };
        Pattern::mqtt(text.as_bytes()).unwrap()
    });
    let literal =
        words(&["a", "b", "*", ""], ".", 3).prop_map(|text| Pattern::literal(text.as_bytes()).unwrap());
    prop_oneof![4 => amqp, 1 => nats, 1 => mqtt, 1 => literal]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn finds_each_pattern_that_matches_once(
        patterns in prop::collection::vec(any_pattern(), 1..40),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
        subjects in prop::collection::vec(words(&["a", "b", "", "_INBOX", "$x", "amq", "gen-x"], ".", 8), 1..8),
    ) {
        let mut trie = Trie::default();
        for (number, pattern) in (0..).zip(&patterns) {
            prop_assert!(trie.insert(SEED, pattern, bound(number)));
            prop_assert!(!trie.insert(SEED, pattern, bound(number)));
        }
        let whole = trie.clone();
        let mut kept: BTreeSet<u32> = (0..).zip(&patterns).map(|(number, _)| number).collect();
        for index in removed {
            let index = index.index(patterns.len());
            let number = u32::try_from(index).unwrap();
            prop_assert_eq!(trie.remove(SEED, &patterns[index], &bound(number)), kept.remove(&number));
        }
        for subject in &subjects {
            let matching = |number: &u32| is_match(&patterns[*number as usize], subject.as_bytes());
            let expected: Vec<u32> = kept.iter().copied().filter(matching).collect();
            let (numbers, looks) = looked_at(&trie, subject);
            prop_assert_eq!(&numbers, &expected, "{}", subject);
            for last in ["a", "b", "", "_INBOX", "$x", "gen-x", "other"] {
                let sibling = format!("{}{last}", subject.rfind('.').map_or("", |dot| &subject[..=dot]));
                prop_assert!(looks.asks_last || found(&trie, &sibling).0 == expected, "{} as {}", sibling, subject);
            }
            let expected: Vec<u32> = (0..).zip(&patterns).map(|(number, _)| number).filter(matching).collect();
            prop_assert_eq!(found(&whole, subject).0, expected, "{} before removing", subject);
        }
        for number in kept {
            prop_assert!(trie.remove(SEED, &patterns[number as usize], &bound(number)));
        }
        prop_assert!(trie.is_empty());
    }

    #[test]
    fn shows_each_binding_with_a_key_of_the_same_steps(patterns in prop::collection::vec(any_pattern(), 0..30)) {
        let mut trie = Trie::default();
        for (number, pattern) in (0..).zip(&patterns) {
            trie.insert(SEED, pattern, bound(number));
        }
        let mut keys = vec![None; patterns.len()];
        trie.for_each(&mut |binding| {
            if let Target::Queue(id) = binding.target {
                keys[id.slot as usize] = Some(String::from_utf8(binding.key.to_vec()).unwrap());
            }
        });
        for (pattern, key) in patterns.iter().zip(keys) {
            prop_assert_eq!(Some(pattern.to_string()), key);
        }
    }

    #[test]
    fn one_pattern_costs_at_most_four_looks_a_token(
        pattern in any_long_pattern(),
        subject in prop_oneof![Just("a".to_owned()), Just("b".to_owned())],
        len in 1..SUBJECT_TOKENS_MAX,
        last in prop::sample::select(&["a", "b"][..]),
    ) {
        let subject = format!("{}{last}", (subject + ".").repeat(len - 1));
        let mut trie = Trie::default();
        trie.insert(SEED, &pattern, bound(0));
        let (_, looks) = found(&trie, &subject);
        prop_assert!(looks <= 4 * len + 4, "{looks} looks for {pattern} in {len} tokens");
        // With a neighbour nothing is packed into a leaf, and each of the two patterns may cost as
        // much.
        if let Some(neighbour) = neighbour(&pattern) {
            trie.insert(SEED, &neighbour, bound(1));
        }
        let (_, looks) = found(&trie, &subject);
        prop_assert!(looks <= 2 * (4 * len + 4), "{looks} looks for forked {pattern} in {len} tokens");
    }
}

/// Patterns of an attacker: long, and made only of words that the subject has.
fn any_long_pattern() -> impl Strategy<Value = Pattern> {
    let word = prop::sample::select(&["a", "a", "b", "*", "#"][..]);
    let ends = (prop::collection::vec(word.clone(), 0..60), prop::collection::vec(word.clone(), 0..60));
    (prop::collection::vec(word, 0..6), ends).prop_filter_map("is refused", |(middle, (first, last))| {
        let fixed = |words: Vec<&'static str>| -> Vec<&'static str> {
            words.into_iter().filter(|word| *word != "#").collect()
        };
        let words = [fixed(first), vec!["#"], middle, vec!["#"], fixed(last)].concat();
        Pattern::amqp(words.join(".").as_bytes()).ok()
    })
}

/// The pattern with one more token, which no subject has, so that the last leaf of the path is
/// split.
fn neighbour(pattern: &Pattern) -> Option<Pattern> {
    Pattern::amqp(format!("{pattern}.zzz").as_bytes()).ok()
}

fn trie_of(patterns: &[&str]) -> Trie {
    let mut trie = Trie::default();
    for (number, pattern) in (0..).zip(patterns) {
        trie.insert(SEED, &Pattern::amqp(pattern.as_bytes()).unwrap(), bound(number));
    }
    trie
}

#[test]
fn runs_of_many_are_as_cheap_as_one() {
    let subject = vec!["a"; SUBJECT_TOKENS_MAX].join(".");
    for count in [1, 2, 40, SUBJECT_TOKENS_MAX] {
        let (numbers, looks) = found(&trie_of(&[&vec!["#"; count].join(".")]), &subject);
        assert_eq!(numbers, [0]);
        assert!(looks <= 4, "{looks} looks for {count} manys");
    }
}

#[test]
fn wildcards_cost_no_more_than_four_times_a_literal() {
    let len = SUBJECT_TOKENS_MAX;
    let subject = vec!["a"; len].join(".");
    for pattern in [
        format!("a{}", ".*".repeat(len - 1)),
        format!("*{}", ".a".repeat(len - 1)),
        format!("a.{}#", "*.".repeat(60)),
        format!("#{}", ".a".repeat(len - 1)),
        format!("#{}.b", ".a".repeat(60)),
        format!("{}#.b", "a.".repeat(60)),
        format!("#.a.#.a.#.a.#{}", ".a".repeat(60)),
        format!("#.a.*.a.#{}.b", ".a".repeat(60)),
        "#.a.a.b.#".to_owned(),
        "#.*.*.b.#".to_owned(),
        "#.b.#.b.#.b.#.b".to_owned(),
    ] {
        let (_, looks) = found(&trie_of(&[&pattern]), &subject);
        assert!(looks <= 4 * len + 4, "{looks} looks for {pattern}");
    }
}

#[test]
fn shared_steps_are_walked_once() {
    let subject = vec!["a"; SUBJECT_TOKENS_MAX].join(".");
    let patterns: Vec<String> = (0..500).map(|number| format!("#.a.#.b{number}.#")).collect();
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let (numbers, looks) = found(&trie_of(&patterns), &subject);
    assert!(numbers.is_empty());
    assert!(looks <= 8 * SUBJECT_TOKENS_MAX, "{looks} looks");
}
