//! Compares the codec with the one in the crates `serde_amqp` and `fe2o3-amqp-types`.

use fe2o3_amqp_types::definitions::Error;
use fe2o3_amqp_types::messaging::{
    Accepted, Header, Modified, Properties, Received, Rejected, Released, Source, Target,
};
use fe2o3_amqp_types::performatives::{Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Transfer};
use fe2o3_amqp_types::sasl::{SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse};
use fe2o3_amqp_types::transaction::{Coordinator, Declare, Declared, Discharge, TransactionalState};
use imori_amqp10::codec::composites::Header as OwnHeader;
use imori_amqp10::codec::push::push_value;
use imori_amqp10::codec::value::Value;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_amqp::primitives::{Array, OrderedMap, Symbol, Timestamp, Uuid};
use serde_amqp::value::Value as Tree;
use serde_amqp::{from_slice, to_vec};

use crate::composites::{is_same, read};
use crate::table::{Choice, sample, table};

/// Decodes a list with the other codec and encodes it again.
fn through<T: DeserializeOwned + Serialize>(bytes: &[u8]) -> Vec<u8> {
    let list: T = from_slice(bytes).unwrap_or_else(|error| panic!("{error:?} in {}", bytes.escape_ascii()));
    to_vec(&list).unwrap()
}

fn other(name: &str, bytes: &[u8]) -> Vec<u8> {
    match name {
        "Open" => through::<Open>(bytes),
        "Begin" => through::<Begin>(bytes),
        "Attach" => through::<Attach>(bytes),
        "Flow" => through::<Flow>(bytes),
        "Transfer" => through::<Transfer>(bytes),
        "Disposition" => through::<Disposition>(bytes),
        "Detach" => through::<Detach>(bytes),
        "End" => through::<End>(bytes),
        "Close" => through::<Close>(bytes),
        "Error" => through::<Error>(bytes),
        "Received" => through::<Received>(bytes),
        "Accepted" => through::<Accepted>(bytes),
        "Rejected" => through::<Rejected>(bytes),
        "Released" => through::<Released>(bytes),
        "Modified" => through::<Modified>(bytes),
        "Source" => through::<Source>(bytes),
        "Target" => through::<Target>(bytes),
        "Coordinator" => through::<Coordinator>(bytes),
        "Declare" => through::<Declare>(bytes),
        "Discharge" => through::<Discharge>(bytes),
        "Declared" => through::<Declared>(bytes),
        "TransactionalState" => through::<TransactionalState>(bytes),
        "SaslMechanisms" => through::<SaslMechanisms>(bytes),
        "SaslInit" => through::<SaslInit>(bytes),
        "SaslChallenge" => through::<SaslChallenge>(bytes),
        "SaslResponse" => through::<SaslResponse>(bytes),
        "SaslOutcome" => through::<SaslOutcome>(bytes),
        "Header" => through::<Header>(bytes),
        "Properties" => through::<Properties>(bytes),
        name => panic!("{name} is new"),
    }
}

/// Decodes a header. The other codec encodes `first-acquirer` false as absent, which has the same
/// meaning.
fn header(bytes: &[u8]) -> OwnHeader {
    let header = read::<OwnHeader>(bytes).unwrap();
    let first_acquirer = header.first_acquirer.filter(|is_first| *is_first);
    OwnHeader { first_acquirer, ..header }
}

proptest! {
    #[test]
    fn lists_are_equal(
        index in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let table = table();
        let composite = &table[index.index(table.len())];
        let sent = sample(composite, &mut Choice::common(&bytes));
        let back = other(composite.name, &sent);
        let is_equal = match composite.name {
            "Header" => header(&sent) == header(&back),
            _ => is_same(composite, &sent, &back),
        };
        prop_assert!(is_equal, "{} and {}", sent.escape_ascii(), back.escape_ascii());
    }

    #[test]
    fn values_are_equal(tree in tree()) {
        let theirs = to_vec(&tree).unwrap();
        let (value, rest) = Value::decode(&theirs).unwrap();
        prop_assert_eq!(rest, b"");
        let mut ours = Vec::new();
        push_value(&mut ours, value);
        let back: Tree = from_slice(&ours).unwrap();
        prop_assert_eq!(&back, &tree);
        // Re-encoding with the other codec restores its bytes.
        prop_assert_eq!(to_vec(&back).unwrap(), theirs);
        let mut again = Vec::new();
        push_value(&mut again, Value::decode(&ours).unwrap().0);
        prop_assert_eq!(again, ours);
    }
}

/// Generates values of the other codec, whose arrays cannot be empty.
fn tree() -> impl Strategy<Value = Tree> {
    let text = "[a-zA-Z ]{0,9}|[a-z]{254,258}";
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        any::<u8>().prop_map(Tree::Ubyte),
        any::<u16>().prop_map(Tree::Ushort),
        prop_oneof![Just(0), 1..256_u32, any::<u32>()].prop_map(Tree::Uint),
        prop_oneof![Just(0), 1..256_u64, any::<u64>()].prop_map(Tree::Ulong),
        any::<i8>().prop_map(Tree::Byte),
        any::<i16>().prop_map(Tree::Short),
        prop_oneof![-130..130_i32, any::<i32>()].prop_map(Tree::Int),
        prop_oneof![-130..130_i64, any::<i64>()].prop_map(Tree::Long),
        any::<f32>().prop_filter("it equals itself", |n| !n.is_nan()).prop_map(|n| Tree::Float(n.into())),
        any::<f64>().prop_filter("it equals itself", |n| !n.is_nan()).prop_map(|n| Tree::Double(n.into())),
        any::<char>().prop_map(Tree::Char),
        any::<i64>().prop_map(|ms| Tree::Timestamp(Timestamp::from_milliseconds(ms))),
        any::<[u8; 16]>().prop_map(|bytes| Tree::Uuid(Uuid::from(bytes))),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Tree::Binary(bytes.into())),
        text.prop_map(Tree::String),
        text.prop_map(|text| Tree::Symbol(Symbol::from(text))),
        prop::collection::vec(any::<u32>(), 1..80)
            .prop_map(|numbers| Tree::Array(Array(numbers.into_iter().map(Tree::Uint).collect()))),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::List),
            prop::collection::vec(("[a-z]{1,4}", inner), 0..6).prop_map(|pairs| {
                let mut map = OrderedMap::new();
                for (key, value) in pairs {
                    map.insert(Tree::String(key), value);
                }
                Tree::Map(map)
            }),
        ]
    })
}
