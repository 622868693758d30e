//! A provider against a peer of our own: from a document to a call and back.
#![allow(clippy::disallowed_methods, reason = "the peer runs beside the test")]

mod formats;
mod loads;

use super::super::config::{
    Document, EraSetting, KeyPlace, RestAuth, RestConfig, Secret, UpstreamConfig, UpstreamKind,
};
use super::super::{HOPS_MAX, RemoteParts};
use super::load;
use futures::future::{BoxFuture, pending, ready};
use kernel::contracts::{Clock, Entropy, Spawn, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{
    Abilities, Call, CallContext, CallProgress, CallReporter, Caller, Reach, ToolError, ToolOutput,
};
use kernel::values::fault::Fault;
use kernel::values::ids::{CallId, Millis};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The span of every call.
const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A petstore with what a petstore has: parameters, a body, a reference, a way to go wrong.
const PETSTORE: &str = "
openapi: 3.0.3
info: {title: Pets, version: '1'}
paths:
  /pets:
    get:
      operationId: listPets
      summary: Lists pets
      tags: [pets]
      parameters:
        - {name: limit, in: query, schema: {type: integer, minimum: 0, exclusiveMinimum: true}}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
      responses: {200: {description: pets}}
    post:
      operationId: addPet
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}
      responses: {201: {description: the pet}}
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: string}}
    delete: {operationId: removePet, responses: {204: {description: gone}}}
    trace: {operationId: tracePet}
  /upload:
    post:
      operationId: upload
      requestBody: {required: true, content: {multipart/mixed: {schema: {type: object}}}}
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, example: Rex}
        tag: {type: string, nullable: true}
        friends: {type: array, items: {$ref: '#/components/schemas/Pet'}}
";

/// Answers one request on each connection, in this order; gives back what it read.
async fn peer(answers: Vec<String>) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let handle = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            requests.push(request(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        requests
    });
    (address, handle)
}

async fn request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.is_none_or(|length| body.len() >= length.parse::<usize>().unwrap()) {
                return text;
            }
        }
        let mut part = [0u8; 4096];
        let count = stream.read(&mut part).await.unwrap();
        assert!(count > 0, "the request broke off");
        read.extend_from_slice(&part[..count]);
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

fn json_answer(status: &str, body: &Value) -> String {
    answer(status, "content-type: application/json\r\n", &body.to_string())
}

/// Time that stands still, or is over at once; threads, but no tasks, no chance.
struct Still;
struct Over;

impl Spawn for Still {
    fn task(&self, name: &'static str, _future: BoxFuture<'static, ()>) {
        panic!("a task `{name}`");
    }
    fn thread(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        std::thread::spawn(move || futures::executor::block_on(future));
    }
}

impl Entropy for Still {
    fn bits(&self) -> u128 {
        0
    }
}

impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(0)
    }
    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }
}

impl Clock for Over {
    fn now(&self) -> Millis {
        Millis(0)
    }
    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
    fn sleep_until(&self, _then: Millis) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

fn parts() -> RemoteParts {
    RemoteParts {
        spawn: Arc::new(Still),
        clock: Arc::new(Still),
        entropy: Arc::new(Still),
        limits: Arc::new(Limits::default()),
        hops_max: HOPS_MAX,
        supervisor: None,
        vault: Arc::new(crate::MemoryVault::new(Arc::new(Still))),
        login: None,
        scope: crate::Scope::default(),
    }
}

/// A document in a file that is gone when the test is.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Self {
        let file = format!("waypost-rest-{}-{name}.yaml", std::process::id());
        let path = std::env::temp_dir().join(file);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn document(&self) -> Document {
        Document::File(self.0.clone())
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn loaded(config: RestConfig, parts: &RemoteParts) -> Result<Vec<Arc<dyn Tool>>, Fault> {
    loaded_within(config, None, parts).await
}

/// The same, of an upstream whose calls may take so long.
async fn loaded_within(
    config: RestConfig,
    timeout_ms: Option<u64>,
    parts: &RemoteParts,
) -> Result<Vec<Arc<dyn Tool>>, Fault> {
    let upstream = UpstreamConfig {
        name: "shop".to_owned(),
        prefix: "shop.".to_owned(),
        kind: UpstreamKind::Rest(config.clone()),
        trusted: false,
        journal: true,
        timeout_ms,
        era: EraSetting::Auto,
        roots: Vec::new(),
        origin: "waypost.toml:3".to_owned(),
    };
    load(&upstream, &config, parts, None).await.map(|loaded| loaded.unwrap().tools)
}

/// The petstore at this address.
async fn pets(name: &str, address: SocketAddr) -> Vec<Arc<dyn Tool>> {
    let file = Written::new(name, PETSTORE);
    let base_url = Some(format!("http://{address}/v1"));
    let config = RestConfig { base_url, ..RestConfig::new(file.document()) };
    loaded(config, &parts()).await.unwrap()
}

async fn call(tools: &[Arc<dyn Tool>], name: &str, arguments: Value) -> Result<Value, ToolError> {
    let tool = tools.iter().find(|tool| tool.spec().name.as_str() == name).unwrap();
    let caller = Caller::new("default", "local");
    let call = Call {
        id: CallId(7),
        tool: name.into(),
        arguments: Arc::new(arguments),
        timeout_ms: 5_000,
        output_bytes_max: 1_000,
        given: Arc::default(),
        can: Abilities::PERSON,
        teller: CallReporter::default(),
        context: CallContext { trace: SPAN.parse().ok(), ..CallContext::default() },
    };
    match tool.call(&caller, &call).await? {
        ToolOutput::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn told(error: &ToolError) -> (CallProgress, &str) {
    (error.how, error.fault.name.as_str())
}

#[tokio::test]
async fn a_petstore_becomes_tools() {
    let file = Written::new("tools", PETSTORE);
    let base_url = Some("https://pets.test".to_owned());
    let config = RestConfig { base_url, ..RestConfig::new(file.document()) };
    let tools = loaded(config.clone(), &parts()).await.unwrap();
    let listed: Vec<(&str, Reach, bool)> = tools
        .iter()
        .map(|tool| (tool.spec().name.as_str(), tool.spec().reach, tool.spec().idempotent))
        .collect();
    let expected = [
        ("shop.listPets", Reach::Reads, true),
        ("shop.addPet", Reach::Writes, false),
        ("shop.removePet", Reach::Writes, true),
    ];
    assert_eq!(listed, expected);
    let list = json!({"type": "object", "additionalProperties": false, "properties": {
        "limit": {"type": "integer", "exclusiveMinimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}}}});
    assert_eq!(*tools[0].spec().input_schema, list);
    assert_eq!(
        (tools[0].spec().title.as_str(), tools[0].spec().tags.as_slice()),
        ("Lists pets", &["pets".to_owned()][..])
    );
    let pet = json!({
        "name": {"type": "string", "examples": ["Rex"]},
        "tag": {"type": ["string", "null"]},
        "friends": {"type": "array", "items": {"$ref": "#/$defs/Pet"}}
    });
    let add = &tools[1].spec().input_schema;
    assert_eq!((&add["properties"], &add["required"]), (&pet, &json!(["name"])));
    assert_eq!(add["$defs"]["Pet"]["properties"], pet);

    let include = Some(vec!["*Pets".to_owned(), "nothing*".to_owned()]);
    let some = loaded(RestConfig { include, ..config }, &parts()).await.unwrap();
    assert_eq!(some.len(), 1);
}

#[tokio::test]
async fn a_call_goes_out_and_its_answer_comes_back() {
    let (address, peer) = peer(vec![
        json_answer("200 OK", &json!([{"name": "Rex"}])),
        json_answer("201 Created", &json!({"id": 1})),
        answer("204 No Content", "", ""),
    ])
    .await;
    let tools = pets("calls", address).await;
    let list = call(&tools, "shop.listPets", json!({"limit": 2, "tags": ["a", "b c"]})).await;
    assert_eq!(list.unwrap(), json!([{"name": "Rex"}]));
    let add = call(&tools, "shop.addPet", json!({"name": "Rex", "tag": null})).await;
    assert_eq!(add.unwrap(), json!({"id": 1}));
    let remove = call(&tools, "shop.removePet", json!({"petId": "a/b"})).await;
    assert_eq!(remove.unwrap(), Value::Null);
    let sent = peer.await.unwrap();
    let key = format!("idempotency-key: {}\r\n", CallId(7));
    assert!(sent[0].starts_with("GET /v1/pets?limit=2&tags=a&tags=b%20c HTTP/1.1\r\n"), "{sent:?}");
    assert!(!sent[0].contains("idempotency-key"), "{sent:?}");
    let span = format!("traceparent: {SPAN}\r\n");
    assert!(sent.iter().all(|one| one.contains(&span)), "{sent:?}");
    assert!(
        sent[1].starts_with("POST /v1/pets HTTP/1.1\r\n") && sent[1].contains(&key),
        "{sent:?}"
    );
    assert!(sent[1].contains("content-type: application/json\r\n"), "{sent:?}");
    assert!(sent[1].ends_with("\r\n\r\n{\"name\":\"Rex\",\"tag\":null}"), "{sent:?}");
    assert!(sent[2].starts_with("DELETE /v1/pets/a%2Fb HTTP/1.1\r\n"), "{sent:?}");
}

#[tokio::test]
async fn http_errors_report_the_progress_of_a_call() {
    for (status, name, arguments, how) in [
        ("404 Not Found", "shop.listPets", json!({}), CallProgress::Failed),
        ("409 Conflict", "shop.addPet", json!({"name": "x"}), CallProgress::Failed),
        ("502 Bad Gateway", "shop.addPet", json!({"name": "x"}), CallProgress::Unknown),
        ("504 Gateway Timeout", "shop.removePet", json!({"petId": "x"}), CallProgress::Unknown),
        ("504 Gateway Timeout", "shop.listPets", json!({}), CallProgress::Failed),
    ] {
        let (address, _peer) = peer(vec![answer(status, "", "words")]).await;
        let error = call(&pets("refusals", address).await, name, arguments).await.unwrap_err();
        assert_eq!(told(&error), (how, "HttpStatus"), "{status}");
        let message = format!("the other side answered {status}: words");
        assert_eq!(error.fault.message, message);
    }
    let (address, _peer) = peer(vec![answer("200 OK", "", &"x".repeat(2_000))]).await;
    let tools = pets("large", address).await;
    let error = call(&tools, "shop.addPet", json!({"name": "x"})).await.unwrap_err();
    assert_eq!(told(&error), (CallProgress::Unknown, "OutputTooLarge"));
}

#[tokio::test]
async fn missing_arguments_are_reported_before_anything_is_sent() {
    let tools = pets("missing", "127.0.0.1:9".parse().unwrap()).await;
    let remove = tools.iter().find(|tool| tool.spec().name.as_str() == "shop.removePet").unwrap();
    for arguments in [json!({}), json!({"petId": ""}), json!({"petId": ".."})] {
        let caller = Caller::new("default", "local");
        let error = remove.check(&caller, &arguments).unwrap_err();
        assert_eq!(told(&error), (CallProgress::NotSent, "InputValidationError"));
    }
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_server_only() {
    let to = |status: &str, place: &str| answer(status, &format!("location: {place}\r\n"), "");
    let found = json_answer("200 OK", &json!("here"));
    let (address, peer) = peer(vec![
        to("302 Found", "/v2/pets?page=1"),
        found.clone(),
        to("307 Temporary Redirect", "../v3/pets"),
        found.clone(),
        to("303 See Other", "/v1/done"),
        found,
        to("303 See Other", "/v1/done"),
        answer("500 Internal Server Error", "", ""),
    ])
    .await;
    let tools = pets("redirects", address).await;
    assert_eq!(call(&tools, "shop.listPets", json!({})).await.unwrap(), json!("here"));
    let pet = || json!({"name": "x"});
    assert_eq!(call(&tools, "shop.addPet", pet()).await.unwrap(), json!("here"));
    assert_eq!(call(&tools, "shop.addPet", pet()).await.unwrap(), json!("here"));
    let unseen = call(&tools, "shop.addPet", pet()).await.unwrap_err();
    assert_eq!(told(&unseen), (CallProgress::Unknown, "HttpStatus"));
    let sent = peer.await.unwrap();
    assert!(sent[1].starts_with("GET /v2/pets?page=1 HTTP/1.1\r\n"), "{sent:?}");
    assert!(sent[3].starts_with("POST /v3/pets HTTP/1.1\r\n"), "{sent:?}");
    assert!(sent[3].ends_with("{\"name\":\"x\"}"), "{sent:?}");
    assert!(sent[5].starts_with("GET /v1/done HTTP/1.1\r\n"), "{sent:?}");
    assert!(sent[5].ends_with("\r\n\r\n"), "{sent:?}");
}

#[tokio::test]
async fn other_redirects_are_errors() {
    let to = |status: &str, place: &str| answer(status, &format!("location: {place}\r\n"), "");
    for (status, place, tool, how) in [
        ("302 Found", "http://169.254.169.254/latest", "shop.listPets", CallProgress::Failed),
        ("301 Moved Permanently", "/elsewhere", "shop.addPet", CallProgress::Failed),
        ("302 Found", "/elsewhere", "shop.addPet", CallProgress::Unknown),
        ("308 Permanent Redirect", "https://other.test/", "shop.addPet", CallProgress::Failed),
    ] {
        let (address, _peer) = peer(vec![to(status, place)]).await;
        let tools = pets("elsewhere", address).await;
        let arguments = if tool == "shop.addPet" { json!({"name": "x"}) } else { json!({}) };
        let error = call(&tools, tool, arguments).await.unwrap_err();
        assert_eq!(told(&error), (how, "Redirected"), "{status} {place}");
    }
    let (address, _peer) = peer(vec![to("302 Found", "/v1/pets"); 4]).await;
    let error = call(&pets("round", address).await, "shop.listPets", json!({})).await.unwrap_err();
    assert_eq!(told(&error), (CallProgress::Failed, "Redirected"));
}

#[tokio::test]
async fn private_addresses_are_refused() {
    let file = |url: &str| {
        json!({"openapi": "3.1.0", "servers": [{"url": url}], "paths": {
            "/x": {"post": {"operationId": "x"}}}})
        .to_string()
    };
    for url in [
        "http://127.0.0.1:9",
        "http://localhost:9",
        "http://10.0.0.7",
        "http://169.254.169.254/latest",
        "http://100.64.0.1",
        "http://[::1]:9",
        "http://[fd00:ec2::254]",
        "http://[::ffff:127.0.0.1]:9",
        "http://0x7f000001:9",
    ] {
        let written = Written::new("private", &file(url));
        let tools = loaded(RestConfig::new(written.document()), &parts()).await.unwrap();
        let error = call(&tools, "shop.x", json!({})).await.unwrap_err();
        assert_eq!(told(&error), (CallProgress::NotSent, "AddressNotAllowed"), "{url}");
        assert!(error.fault.hint.unwrap().contains("allow_private"), "{url}");
    }
    let (address, peer) = peer(vec![json_answer("200 OK", &json!(1))]).await;
    let written = Written::new("allowed", &file(&format!("http://localhost:{}", address.port())));
    let config = RestConfig { allow_private: true, ..RestConfig::new(written.document()) };
    let tools = loaded(config, &parts()).await.unwrap();
    assert_eq!(call(&tools, "shop.x", json!({})).await.unwrap(), json!(1));
    assert_eq!(peer.await.unwrap().len(), 1);
}

#[tokio::test]
async fn errors_contain_no_secrets() {
    let secret = "s3cr3t/key";
    for (auth, sent) in [
        (RestAuth::Bearer(Secret::from(secret)), "authorization: Bearer s3cr3t/key"),
        (
            RestAuth::ApiKey {
                name: "key".to_owned(),
                place: KeyPlace::Query,
                value: Secret::from(secret),
            },
            "GET /v1/pets?key=s3cr3t%2Fkey ",
        ),
        (
            RestAuth::ApiKey {
                name: "X-Key".to_owned(),
                place: KeyPlace::Header,
                value: Secret::from(secret),
            },
            "x-key: s3cr3t/key",
        ),
    ] {
        let echo = format!("no such key: {secret} (s3cr3t%2Fkey) {}{secret}", "x".repeat(470));
        let (address, peer) = peer(vec![answer("401 Unauthorized", "", &echo)]).await;
        let file = Written::new("secret", PETSTORE);
        let base_url = Some(format!("http://{address}/v1"));
        let config = RestConfig { base_url, auth: Some(auth), ..RestConfig::new(file.document()) };
        assert!(!format!("{config:?}").contains(secret));
        let tools = loaded(config, &parts()).await.unwrap();
        let error = call(&tools, "shop.listPets", json!({})).await.unwrap_err();
        let shown = format!("{error:?}");
        assert!(shown.contains("no such key: ***") && !shown.contains("s3cr"), "{shown}");
        assert!(peer.await.unwrap()[0].contains(sent), "{sent}");
    }
}

#[tokio::test]
async fn a_call_times_out() {
    let (address, _peer) = peer(vec![answer("200 OK", "", "")]).await;
    let file = Written::new("late", PETSTORE);
    let base_url = Some(format!("http://{address}"));
    let config = RestConfig { base_url, ..RestConfig::new(file.document()) };
    let parts = RemoteParts { clock: Arc::new(Over), ..parts() };
    let tools = loaded_within(config, Some(50), &parts).await.unwrap();
    for (tool, arguments, how) in [
        ("shop.listPets", json!({}), CallProgress::Failed),
        ("shop.addPet", json!({"name": "x"}), CallProgress::Unknown),
    ] {
        let error = call(&tools, tool, arguments).await.unwrap_err();
        assert_eq!(told(&error), (how, "Timeout"));
        assert_eq!(error.fault.message, "the other side did not answer within 50 ms");
    }
}

#[tokio::test]
async fn a_document_can_be_loaded_from_a_url() {
    let document = json!({"openapi": "3.1.0", "paths": {"/x": {"get": {"operationId": "x"}}}});
    let (address, peer) = peer(vec![
        json_answer("200 OK", &document),
        answer("200 OK", "content-type: text/plain\r\n", "hi"),
    ])
    .await;
    let config = RestConfig {
        auth: Some(RestAuth::Bearer(Secret::from("token-7"))),
        ..RestConfig::new(Document::Url(format!("http://{address}/docs/openapi.json")))
    };
    let tools = loaded(config, &parts()).await.unwrap();
    assert_eq!(call(&tools, "shop.x", json!({})).await.unwrap(), json!("hi"));
    let sent = peer.await.unwrap();
    assert!(sent[0].starts_with("GET /docs/openapi.json HTTP/1.1\r\n"), "{sent:?}");
    // No one said that the document's server is to be shown who we are.
    assert!(!sent[0].contains("token-7") && sent[1].contains("token-7"), "{sent:?}");
    assert!(sent[1].starts_with("GET /x HTTP/1.1\r\n"), "{sent:?}");
}

#[tokio::test]
async fn unloadable_documents_are_reported() {
    let small = Limits { upstream_document_bytes_max: 20, ..Limits::default() };
    let small = RemoteParts { limits: Arc::new(small), ..parts() };
    let gone = Document::File(PathBuf::from("no-such-file.yaml"));
    let fault = loaded(RestConfig::new(gone), &parts()).await.err().unwrap();
    assert_eq!(fault.name, "DocumentUnusable");
    assert!(fault.message.contains("`shop` at `no-such-file.yaml`"), "{fault}");
    let file = Written::new("small", PETSTORE);
    let fault = loaded(RestConfig::new(file.document()), &small).await.err().unwrap();
    assert!(fault.message.contains("`upstream_document_bytes_max` = 20"), "{fault}");
    let fault = loaded(RestConfig::new(file.document()), &parts()).await.err().unwrap();
    assert!(fault.message.contains("say `base_url`"), "{fault}");
    let include = Some(vec!["[a]".to_owned()]);
    let config = RestConfig { include, ..RestConfig::new(file.document()) };
    let fault = loaded(config, &parts()).await.err().unwrap();
    assert_eq!(
        (fault.name.as_str(), fault.hint.unwrap().as_str()),
        ("BadSettings", "correct it in waypost.toml:3")
    );
    let (address, _peer) = peer(vec![answer("404 Not Found", "", "no x?token=abc")]).await;
    let document = Document::Url(format!("http://{address}/openapi.json?token=abc"));
    let fault = loaded(RestConfig::new(document), &parts()).await.err().unwrap();
    assert!(fault.message.contains("404 Not Found: no x?***"), "{fault}");
    assert!(!fault.message.contains("abc"), "{fault}");
}
