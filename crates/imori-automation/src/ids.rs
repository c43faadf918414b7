//! Ids of triggers, rules, events and executions: 12 bytes in 24 hex digits, like MongoDB's ObjectId.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER_PERMISSIVE;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An id: the second of its creation, then eight random or derived bytes. Ids sort by that second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id([u8; 12]);

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdError;

impl Id {
    /// An id for something new. `seconds` count from 1970 and have to fit into 32 bits, as they do until 2106.
    pub fn new(seconds: u32, random: [u8; 8]) -> Id {
        let mut bytes = [0; 12];
        let (time, rest) = bytes.split_at_mut(4);
        time.copy_from_slice(&seconds.to_be_bytes());
        rest.copy_from_slice(&random);
        Id(bytes)
    }

    /// The id of what follows from `parts`, equal whenever they are equal. Lists of parts that are equal only when
    /// joined have different ids.
    pub fn derived(seconds: u32, parts: &[&[u8]]) -> Id {
        let mut context = Context::new(&SHA256);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let digest = context.finish();
        let hash = digest.as_ref().first_chunk().expect("SHA-256 has 32 bytes");
        Id::new(seconds, *hash)
    }

    /// The id of the execution that an event starts by an action of a rule. A replay of the event gets the same id, and
    /// the store refuses the second execution.
    pub fn execution(event: Id, rule: Id, rule_revision: u64, action_index: u32) -> Id {
        let parts: [&[u8]; 5] =
            [b"execution", &event.0, &rule.0, &rule_revision.to_be_bytes(), &action_index.to_be_bytes()];
        Id::derived(event.seconds(), &parts)
    }

    /// The id of the execution of a workflow's call. A repeated transition of the workflow gets the same id, and the store
    /// refuses the second execution.
    pub fn call(workflow: Id, call: &str) -> Id {
        Id::derived(workflow.seconds(), &[b"call", &workflow.0, call.as_bytes()])
    }

    /// The second of creation, counted from 1970.
    pub fn seconds(self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }

    /// The bytes, in the order by which ids sort.
    pub fn bytes(self) -> [u8; 12] {
        self.0
    }

    /// The id of these bytes.
    pub fn from_bytes(bytes: [u8; 12]) -> Id {
        Id(bytes)
    }
}

/// 24 hexadecimal digits in lower case.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER_PERMISSIVE.encode(&self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Id, IdError> {
        let mut bytes = [0; 12];
        if text.len() != 2 * bytes.len() {
            return Err(IdError);
        }
        HEXLOWER_PERMISSIVE.decode_mut(text.as_bytes(), &mut bytes).map_err(|_| IdError)?;
        Ok(Id(bytes))
    }
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id has 24 hexadecimal digits")
    }
}

impl std::error::Error for IdError {}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
