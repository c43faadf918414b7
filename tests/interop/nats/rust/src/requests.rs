//! Requests, by the client's own inbox and otherwise, and services.

use std::collections::HashSet;

use async_nats::client::RequestErrorKind;
use async_nats::service::error::Error as ServiceError;
use async_nats::service::{Service, ServiceExt};
use async_nats::{Client, Request};
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::{Run, bodies, fence, is_empty, numbers, subscribe, text};

/// Answers n by n + 1.
pub async fn respond(client: Client, subject: String) {
    let mut requests = subscribe(&client, subject).await;
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let answer = text(&request).parse::<u64>().unwrap() + 1;
            client.publish(request.reply.unwrap(), answer.to_string().into()).await.unwrap();
        }
    });
}

/// Makes a request, with an inbox of its own if told so.
async fn call(client: &Client, subject: String, number: u64, old_style: bool) -> u64 {
    let mut request = Request::new().payload(number.to_string().into());
    if old_style {
        request = request.inbox(client.new_inbox());
    }
    text(&client.send_request(subject, request).await.unwrap()).parse().unwrap()
}

async fn call_many(run: &Run, client: &Client, old_style: bool) {
    let calls = (0..200).map(|number| call(client, run.name.clone(), number, old_style));
    assert_eq!(join_all(calls).await, (1..=200).collect::<Vec<_>>());
}

pub async fn request_and_reply(run: &Run) {
    respond(run.connect().await, run.name.clone()).await;
    call_many(run, &run.connect().await, false).await;
}

pub async fn old_style_requests(run: &Run) {
    respond(run.connect().await, run.name.clone()).await;
    call_many(run, &run.connect().await, true).await;
}

pub async fn no_responders(run: &Run) {
    for old_style in [false, true] {
        let (client, subject) = (run.connect().await, format!("{}.{old_style}", run.name));
        let mut request = Request::new();
        if old_style {
            request = request.inbox(client.new_inbox());
        }
        let error = client.send_request(subject.clone(), request).await.unwrap_err();
        assert!(matches!(error.kind(), RequestErrorKind::NoResponders));
        respond(client.clone(), subject.clone()).await;
        assert_eq!(call(&client, subject, 1, old_style).await, 2);
    }
}

pub async fn many_replies(run: &Run) {
    let (requester, responders) = (run.connect().await, 5);
    for body in numbers(responders) {
        let client = run.connect().await;
        let mut requests = subscribe(&client, &run.name).await;
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                client.publish(request.reply.unwrap(), body.clone().into()).await.unwrap();
            }
        });
    }
    let inbox = requester.new_inbox();
    let mut replies = subscribe(&requester, &inbox).await;
    let question = "who is there?".into();
    requester.publish_with_reply(run.name.clone(), inbox, question).await.unwrap();
    let mut answers = bodies(&mut replies, responders).await;
    answers.sort();
    assert_eq!(answers, numbers(responders));
    assert!(is_empty(&requester, &mut replies).await);
}

/// Starts a service that doubles numbers; it lasts as long as what is returned.
async fn start_service(run: &Run) -> Service {
    let client = run.connect().await;
    let service = client.service_builder().start(&run.name, "1.2.3").await.unwrap();
    let endpoint = service.endpoint_builder().name("double");
    let mut requests = endpoint.add(format!("{}.double", run.name)).await.unwrap();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let wrong = ServiceError { status: "not a number".to_owned(), code: 400 };
            let number = text(&request.message).parse::<u64>();
            let answer = number.map(|number| (2 * number).to_string().into()).map_err(|_| wrong);
            request.respond(answer).await.unwrap();
        }
    });
    fence(&client).await;
    service
}

pub async fn service(run: &Run) {
    let instances = [start_service(run).await, start_service(run).await, start_service(run).await];
    let (client, subject) = (run.connect().await, format!("{}.double", run.name));
    for number in 0..30 {
        assert_eq!(call(&client, subject.clone(), number, false).await, 2 * number);
    }
    let wrong = client.request(subject, "x".into()).await.unwrap();
    let headers = wrong.headers.unwrap();
    assert_eq!(headers.get("Nats-Service-Error-Code").unwrap().as_str(), "400");
    assert_eq!(headers.get("Nats-Service-Error").unwrap().as_str(), "not a number");
    let mut requests = 0;
    for verb in ["PING", "INFO", "STATS"] {
        let inbox = client.new_inbox();
        let mut replies = subscribe(&client, &inbox).await;
        let subject = format!("$SRV.{verb}.{}", run.name);
        client.publish_with_reply(subject, inbox, "".into()).await.unwrap();
        let mut ids = HashSet::new();
        for body in bodies(&mut replies, instances.len()).await {
            let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!((&answer["name"], &answer["version"]), (&run.name.as_str().into(), &"1.2.3".into()));
            ids.insert(answer["id"].as_str().unwrap().to_owned());
            for endpoint in answer["endpoints"].as_array().into_iter().flatten() {
                requests += endpoint["num_requests"].as_u64().unwrap_or(0);
            }
        }
        assert_eq!(ids.len(), instances.len());
        assert!(is_empty(&client, &mut replies).await);
    }
    assert_eq!(requests, 31);
}
