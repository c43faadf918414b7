//! Frames between the engine and the process of a Python action.

use imori_automation::value::Value;
use imori_engine::for_tests::{converse, receive_frame};
use imori_engine::limits::PYTHON_RESULT_BYTES_MAX;
use imori_engine::python::{Datastore, DatastoreAnswer, DatastoreFuture, DatastoreQuestion};
use tokio::io::AsyncWriteExt as _;

struct Echo;

impl Datastore for Echo {
    fn answer(&self, question: DatastoreQuestion) -> DatastoreFuture<'_> {
        Box::pin(async move {
            match question {
                DatastoreQuestion::Get { name, .. } => Ok(DatastoreAnswer::Value(Some(name))),
                DatastoreQuestion::Set { .. } => Ok(DatastoreAnswer::Done),
                other => Err(format!("{other:?}")),
            }
        })
    }
}

fn frame(json: &str) -> Vec<u8> {
    [&u32::try_from(json.len()).unwrap().to_be_bytes(), json.as_bytes()].concat()
}

#[tokio::test]
async fn questions_are_answered_until_the_socket_closes() {
    let rows = [
        (r#"{"kind":"datastore","operation":"get","name":"k","decrypt":false}"#, r#"{"answer":"k"}"#),
        (r#"{"kind":"datastore","operation":"set","name":"k","value":"v","ttl":null}"#, r#"{"answer":null}"#),
        (r#"{"kind":"datastore","operation":"user"}"#, r#"{"error":"User"}"#),
        (
            "{",
            r#"{"error":"the datastore does not take this: EOF while parsing an object at line 1 column 1"}"#,
        ),
    ];
    let (mut theirs, ours) = tokio::io::duplex(4096);
    let mut result = None;
    let action = async {
        assert_eq!(receive_frame(&mut theirs, PYTHON_RESULT_BYTES_MAX).await.unwrap(), b"{}");
        for (question, answer) in rows {
            theirs.write_all(&frame(question)).await.unwrap();
            assert_eq!(
                String::from_utf8(receive_frame(&mut theirs, PYTHON_RESULT_BYTES_MAX).await.unwrap())
                    .unwrap(),
                answer
            );
        }
        let end = r#"{"kind":"result","execution_id":"e","exit_code":0,"status":null,"result":[1.0,1]}"#;
        theirs.write_all(&frame(end)).await.unwrap();
        drop(theirs);
    };
    tokio::join!(action, converse(ours, b"{}", &Echo, &mut result));
    let result = result.unwrap().result;
    assert_eq!(result, Some(Value::List(vec![Value::Float(1.0), Value::Int(1)])));
}

#[tokio::test]
async fn what_is_no_frame_ends_the_conversation() {
    for bytes in [&b"\xff\xff\xff\xff"[..], b"\0\0\0\x02", b"\0\0\0\x02{}", b"\0\0\0\x01x", b"\0", br#""#] {
        let (mut theirs, ours) = tokio::io::duplex(4096);
        let mut result = None;
        let action = async {
            receive_frame(&mut theirs, PYTHON_RESULT_BYTES_MAX).await.unwrap();
            theirs.write_all(bytes).await.unwrap();
            theirs.shutdown().await.unwrap();
        };
        tokio::join!(action, converse(ours, b"{}", &Echo, &mut result));
        assert_eq!(result, None);
    }
}
