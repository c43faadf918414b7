//! Prints the configuration as text: the commented sample, or the values in force.

use imori_server::config::{Config, Effect};

const HEAD: &str = "\
# The configuration of Imori: every key, with its default.
#
# A key that is left out, or commented out as below, has its default. Unknown keys are errors.
# `imori config check FILE` tells what is wrong with a file.
#
# Over the file go environment variables, `IMORI__LIMITS__QUEUES=1000` for `limits.queues`, and
# over those the options of `imori serve`.
#
# SIGHUP reads the file again. Each key says whether a reload takes over another value at once, for connections that
# begin after it, or not before a restart. A file that is wrong changes nothing.
#
# This text is printed by `imori config show --sample`.
";

/// The sample file: every section and key with its documentation, the keys commented out.
pub fn sample() -> String {
    let mut text = String::from(HEAD);
    for section in Config::default().sections() {
        text.push('\n');
        for line in section.doc {
            text.push_str(&format!("#{line}\n"));
        }
        text.push_str(&format!("[{}]\n", section.name));
        for key in section.keys {
            text.push('\n');
            for line in key.doc {
                text.push_str(&format!("#{line}\n"));
            }
            let (expected, effect) = (key.expected, effect(key.effect));
            text.push_str(&format!("# Takes {expected}. {effect}.\n#{} = {}\n", key.name, key.value));
        }
    }
    text
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::AtOnce => "Reload: at once",
        Effect::NewConnections => "Reload: for new connections",
        Effect::Restart => "Reload: no, with a restart",
    }
}

/// Every section and key with its current value.
pub fn show(config: &Config) -> String {
    let sections = config.sections().into_iter().map(|section| {
        let keys = section.keys.iter().map(|key| format!("{} = {}\n", key.name, key.value));
        format!("[{}]\n{}", section.name, keys.collect::<String>())
    });
    sections.collect::<Vec<String>>().join("\n")
}
