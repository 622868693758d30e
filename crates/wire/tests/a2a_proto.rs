//! Protocol Buffers of A2A: the table of fields is that of the official definition, and another
//! implementation reads what we write and writes what we read.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use prost::Message as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use wire::a2a::proto::schema::{self, Field, Kind, Shape};
use wire::a2a::proto::{BadProto, Operation, read, to_json, write};
use wire::a2a::request::SendMessageRequest;

const DEFINITION: &str = include_str!("../proto/a2a.proto");
const DEPTH_MAX: usize = 64;
/// Of how many members a message has one, at most.
const ONE_OF_MAX: usize = 5;
/// How many changed messages of each shape are looked at.
const ROUNDS: usize = 200;

#[derive(Clone, PartialEq, prost::Message)]
struct Request {
    #[prost(string, tag = "1")]
    tenant: String,
    #[prost(message, optional, tag = "2")]
    message: Option<Message>,
    #[prost(message, optional, tag = "3")]
    configuration: Option<Configuration>,
    #[prost(message, optional, tag = "4")]
    metadata: Option<Members>,
    /// Not of this definition.
    #[prost(string, tag = "99")]
    later: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Configuration {
    #[prost(string, repeated, tag = "1")]
    modes: Vec<String>,
    #[prost(int32, optional, tag = "3")]
    history_length: Option<i32>,
    #[prost(bool, tag = "4")]
    return_immediately: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Message {
    #[prost(string, tag = "1")]
    message_id: String,
    #[prost(int32, tag = "4")]
    role: i32,
    #[prost(message, repeated, tag = "5")]
    parts: Vec<Part>,
    #[prost(message, optional, tag = "6")]
    metadata: Option<Members>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Part {
    #[prost(oneof = "Content", tags = "1, 2, 3, 4")]
    content: Option<Content>,
    #[prost(string, tag = "7")]
    media_type: String,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Content {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bytes = "vec", tag = "2")]
    Raw(Vec<u8>),
    #[prost(string, tag = "3")]
    Url(String),
    #[prost(message, tag = "4")]
    Data(Any),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Members {
    #[prost(map = "string, message", tag = "1")]
    fields: HashMap<String, Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Items {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(oneof = "AnyKind", tags = "1, 2, 3, 4, 5, 6")]
    kind: Option<AnyKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum AnyKind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Flag(bool),
    #[prost(message, tag = "5")]
    Members(Members),
    #[prost(message, tag = "6")]
    Items(Items),
}

fn any(kind: AnyKind) -> Any {
    Any { kind: Some(kind) }
}

fn part(content: Content) -> Part {
    Part { content: Some(content), media_type: String::new() }
}

fn taken(bytes: &[u8]) -> Result<SendMessageRequest, BadProto> {
    read(&schema::SEND_MESSAGE_REQUEST, bytes, DEPTH_MAX)
}

fn request() -> Request {
    let numbers = [1.0, -2.0, 1.5].map(|number| any(AnyKind::Number(number))).to_vec();
    let inner = HashMap::from([
        ("list".to_owned(), any(AnyKind::Items(Items { values: numbers }))),
        ("null".to_owned(), any(AnyKind::Null(0))),
        ("flag".to_owned(), any(AnyKind::Flag(true))),
    ]);
    let metadata = Members { fields: inner.clone() };
    let parts = vec![
        part(Content::Text(String::new())),
        part(Content::Raw(vec![0, 255])),
        part(Content::Url("https://a.test/".to_owned())),
        part(Content::Data(any(AnyKind::Members(Members { fields: inner })))),
        part(Content::Data(any(AnyKind::Null(0)))),
        part(Content::Data(any(AnyKind::Text("\u{e4}".to_owned())))),
    ];
    let message_id = "m1".to_owned();
    Request {
        tenant: "default".to_owned(),
        message: Some(Message { message_id, role: 1, parts, metadata: Some(metadata) }),
        configuration: Some(Configuration {
            modes: vec!["text/plain".to_owned()],
            history_length: Some(0),
            return_immediately: true,
        }),
        metadata: None,
        later: String::new(),
    }
}

#[test]
fn messages_interoperate_with_another_implementation() {
    let sent = request();
    let bytes = Request { later: "ignored".to_owned(), ..sent.clone() }.encode_to_vec();
    let taken: SendMessageRequest = read(&schema::SEND_MESSAGE_REQUEST, &bytes, DEPTH_MAX).unwrap();
    let inner = json!({"list": [1, -2, 1.5], "null": null, "flag": true});
    let expected = json!({"tenant": "default", "message": {"messageId": "m1", "role": "ROLE_USER",
        "parts": [{"text": ""}, {"raw": "AP8="}, {"url": "https://a.test/"}, {"data": inner},
            {"data": null}, {"data": "\u{e4}"}], "metadata": inner},
        "configuration": {"acceptedOutputModes": ["text/plain"], "historyLength": 0,
            "returnImmediately": true}});
    assert_eq!(serde_json::to_value(&taken).unwrap(), expected);
    let written = write(&schema::SEND_MESSAGE_REQUEST, &taken);
    assert_eq!(Request::decode(&*written).unwrap(), sent);
}

#[test]
fn the_last_of_several_contents_counts_and_pieces_of_a_message_are_joined() {
    let first = part(Content::Text("a".to_owned())).encode_to_vec();
    let second = part(Content::Url("b".to_owned())).encode_to_vec();
    let members = to_json(&schema::PART, &[first, second].concat(), DEPTH_MAX).unwrap();
    assert_eq!(json!(members), json!({"url": "b"}));
    let piece =
        |message: Message| Request { message: Some(message), ..Request::default() }.encode_to_vec();
    let named = piece(Message { message_id: "m".to_owned(), ..Message::default() });
    let said = piece(Message { role: 2, ..Message::default() });
    let bytes = [named, said].concat();
    let members = to_json(&schema::SEND_MESSAGE_REQUEST, &bytes, DEPTH_MAX).unwrap();
    assert_eq!(json!(members), json!({"message": {"messageId": "m", "role": "ROLE_AGENT"}}));
}

#[test]
fn wrong_fields_are_refused_with_their_path() {
    let wrong = |bytes: &[u8]| taken(bytes).unwrap_err();
    // A tenant that is a number, one that is not UTF-8, and a message that ends too early.
    assert_eq!(wrong(b"\x08\x01").place, "tenant");
    assert_eq!(wrong(b"\x0a\x01\xff").place, "tenant");
    assert_eq!(wrong(b"\x12\x02\x0a\x05").place, "message");
    let infinite = part(Content::Data(any(AnyKind::Number(f64::INFINITY))));
    let message = Message { parts: vec![infinite], ..Message::default() };
    let bytes = Request { message: Some(message), ..Request::default() }.encode_to_vec();
    assert_eq!(wrong(&bytes).place, "message.parts.data");
    let none = Message { parts: vec![Part::default()], ..Message::default() };
    let bytes = Request { message: Some(none), ..Request::default() }.encode_to_vec();
    assert!(wrong(&bytes).why.contains("this has none"));
    let strange = Message { role: 77, ..Message::default() };
    let bytes = Request { message: Some(strange), ..Request::default() }.encode_to_vec();
    assert!(wrong(&bytes).why.contains("`77` is not a role"), "{}", wrong(&bytes));
}

#[test]
fn nesting_of_values_is_limited() {
    let mut value = any(AnyKind::Flag(true));
    for _ in 0..80 {
        value = any(AnyKind::Items(Items { values: vec![value] }));
    }
    let bytes = part(Content::Data(value)).encode_to_vec();
    assert!(to_json(&schema::PART, &bytes, 100).is_ok());
    let error = to_json(&schema::PART, &bytes, DEPTH_MAX).unwrap_err();
    assert!(error.why.contains("nests too deep"), "{error}");
}

#[test]
fn mutated_bytes_are_read_or_refused() {
    // A plain generator: the same bytes in every run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let valid = request().encode_to_vec();
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut bytes = valid.clone();
        let at = (state >> 33) as usize % bytes.len();
        bytes[at] = (state >> 24) as u8;
        bytes.truncate(bytes.len() - (state >> 20) as usize % 4);
        if let Ok(request) = taken(&bytes) {
            // What was taken can be written and taken again.
            let written = write(&schema::SEND_MESSAGE_REQUEST, &request);
            assert_eq!(request, taken(&written).unwrap());
        }
    }
}

/// All messages of the table, those of errors included.
fn all_shapes() -> Vec<&'static Shape> {
    fn add(shape: &'static Shape, all: &mut Vec<&'static Shape>) {
        if all.iter().any(|known| known.name == shape.name) {
            return;
        }
        all.push(shape);
        for field in shape.fields {
            if let Kind::Message(inner) | Kind::Named(inner) = field.kind {
                add(inner, all);
            }
        }
    }
    let mut all = Vec::new();
    for operation in Operation::ALL {
        add(operation.request(), &mut all);
        add(operation.answer(), &mut all);
    }
    for root in [&schema::PUSH_CONFIG, &schema::BAD_REQUEST, &schema::ERROR_INFO, &schema::STATUS] {
        add(root, &mut all);
    }
    all
}

/// A message of this shape with something in every field; where it has one of several, the one of
/// this number.
fn sample(shape: &Shape, one_of: usize) -> Value {
    let groups = shape.fields.iter().filter(|field| field.is_one_of).count();
    let chosen = shape.fields.iter().filter(|field| field.is_one_of).nth(one_of % groups.max(1));
    let is_there = |field: &&Field| {
        !field.is_one_of || chosen.is_some_and(|chosen| chosen.number == field.number)
    };
    let anything = json!({"list": [1, -2.5, null, true, "x", {"a": {}}]});
    let members = shape.fields.iter().filter(is_there).map(|field| {
        let value = match field.kind {
            Kind::Text => json!("a text"),
            Kind::Bytes => json!("AP8="),
            Kind::Flag => json!(true),
            Kind::Whole => json!(7),
            Kind::Word(words) => json!(words[1]),
            Kind::Moment => json!("2026-01-02T03:04:05.678Z"),
            Kind::Struct | Kind::Value => anything.clone(),
            Kind::Texts => json!({"key": "value"}),
            Kind::Message(inner) => sample(inner, one_of),
            Kind::Named(inner) => json!({"name": sample(inner, one_of)}),
        };
        (field.name.to_owned(), if field.is_list { json!([value, value]) } else { value })
    });
    Value::Object(members.collect())
}

#[test]
fn random_bytes_of_every_message_are_read_or_refused() {
    let shapes = all_shapes();
    assert!(shapes.len() > 30, "{} messages", shapes.len());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |end: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end.max(1)
    };
    for shape in shapes {
        let right: Vec<Vec<u8>> = (0..ONE_OF_MAX).map(|one_of| right(shape, one_of)).collect();
        let mut read = 0;
        let mut refused = 0;
        for round in 0..ROUNDS {
            let mut bytes = right[round % ONE_OF_MAX].clone();
            for _ in 0..=draw(3) {
                let at = draw(bytes.len());
                match draw(4) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, draw(256) as u8),
                    _ if at < bytes.len() => bytes[at] = draw(256) as u8,
                    _ => {}
                }
            }
            let Ok(taken) = to_json(shape, &bytes, DEPTH_MAX) else {
                refused += 1;
                continue;
            };
            read += 1;
            // A word that is not known is not written; all else is read as it was written.
            let once = to_json(shape, &write(shape, &taken), DEPTH_MAX).unwrap();
            let again = to_json(shape, &write(shape, &once), DEPTH_MAX).unwrap();
            assert_eq!(once, again, "{}: {bytes:?}", shape.name);
        }
        // Messages that are all read, or all refused, would show nothing.
        assert!(read > 0 && refused > 0, "{}: {read} read, {refused} refused", shape.name);
    }
}

/// The bytes of a sample, all of which are read.
fn right(shape: &Shape, one_of: usize) -> Vec<u8> {
    let whole = sample(shape, one_of);
    let bytes = write(shape, &whole);
    let read = to_json(shape, &bytes, DEPTH_MAX).unwrap();
    assert_eq!(read.len(), whole.as_object().unwrap().len(), "{}: {read:?}", shape.name);
    bytes
}

/// A field as the definition has it: label and type by number and name.
type Fields = BTreeMap<u32, (String, String)>;

/// The messages of the definition.
fn defined() -> BTreeMap<String, Fields> {
    let mut messages = BTreeMap::new();
    let mut name = None::<String>;
    for line in DEFINITION.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("message ") {
            let started = rest.trim_end_matches('{').trim().to_owned();
            messages.insert(started.clone(), Fields::new());
            name = Some(started);
        } else if line.starts_with("service ") || line.starts_with("enum ") {
            name = None;
        }
        let is_plain = line.starts_with("//") || line.starts_with("option ");
        let Some((before, after)) = line.split_once(" = ").filter(|_| !is_plain) else { continue };
        let (kind, field) = before.rsplit_once(' ').unwrap_or(("", before));
        let number = after.split([' ', ';']).next().and_then(|number| number.parse().ok());
        if let (Some(name), Some(number)) = (&name, number) {
            let fields = messages.get_mut(name).unwrap();
            fields.insert(number, (field.to_owned(), kind.to_owned()));
        }
    }
    messages
}

fn kind_of(field: &Field) -> String {
    let kind = match field.kind {
        Kind::Text => "string".to_owned(),
        Kind::Bytes => "bytes".to_owned(),
        Kind::Flag => "bool".to_owned(),
        Kind::Whole => "int32".to_owned(),
        Kind::Word(words) if words == schema::ROLES => "Role".to_owned(),
        Kind::Word(_) => "TaskState".to_owned(),
        Kind::Moment => "google.protobuf.Timestamp".to_owned(),
        Kind::Struct => "google.protobuf.Struct".to_owned(),
        Kind::Value => "google.protobuf.Value".to_owned(),
        Kind::Texts => "map<string, string>".to_owned(),
        Kind::Message(shape) => shape.name.to_owned(),
        Kind::Named(shape) => format!("map<string, {}>", shape.name),
    };
    if field.is_list { format!("repeated {kind}") } else { kind }
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (head, tail) = part.split_at(1);
        text + &head.to_uppercase() + tail
    })
}

fn compare(shape: &Shape, defined: &BTreeMap<String, Fields>, seen: &mut Vec<&'static str>) {
    let fields = &defined[shape.name];
    assert_eq!(shape.fields.len(), fields.len(), "{}", shape.name);
    for field in shape.fields {
        let (name, kind) = &fields[&field.number];
        let kind = kind.strip_prefix("optional ").unwrap_or(kind);
        assert_eq!((field.name, kind_of(field).as_str()), (camel(name).as_str(), kind));
        if let Kind::Message(inner) | Kind::Named(inner) = field.kind
            && !seen.contains(&inner.name)
        {
            seen.push(inner.name);
            compare(inner, defined, seen);
        }
    }
}

/// The operations of the definition: the name, the request and the answer of each.
fn declared() -> Vec<[&'static str; 3]> {
    let operations = DEFINITION.lines().filter_map(|line| {
        let (name, rest) = line.trim().strip_prefix("rpc ")?.split_once('(')?;
        let (request, rest) = rest.split_once(") returns (")?;
        let (answer, _) = rest.split_once(')')?;
        Some([name, request, answer.strip_prefix("stream ").unwrap_or(answer)])
    });
    let mut operations: Vec<_> = operations.collect();
    operations.sort_unstable();
    operations
}

#[test]
fn the_table_of_operations_is_that_of_the_definition() {
    let row = |operation: Operation| {
        [operation.name(), operation.request().name, operation.answer().name]
    };
    let mut listed = Operation::ALL.map(row);
    listed.sort_unstable();
    assert_eq!(listed.to_vec(), declared());
    for operation in Operation::ALL {
        assert_eq!(Operation::named(operation.name()), Some(operation));
    }
    assert_eq!(Operation::named("message/send"), None);
}

#[test]
fn the_table_of_fields_is_that_of_the_definition() {
    let defined = defined();
    let mut seen = Vec::new();
    // What an operation takes or gives is the root of all others; one gives a message of Google's.
    let roots = Operation::ALL.map(|operation| [operation.request(), operation.answer()]);
    for root in roots.into_iter().flatten().filter(|root| root.name != schema::EMPTY.name) {
        seen.push(root.name);
        compare(root, &defined, &mut seen);
    }
    let unseen: Vec<&String> =
        defined.keys().filter(|name| !seen.contains(&name.as_str())).collect();
    assert!(unseen.is_empty(), "messages without fields here: {unseen:?}");
    for (words, name) in [(schema::TASK_STATES, "TaskState"), (schema::ROLES, "Role")] {
        let (_, body) = DEFINITION.split_once(&format!("enum {name} {{")).unwrap();
        let body = body.split_once('}').unwrap().0.lines().map(str::trim);
        let values = body.filter(|line| !line.starts_with("//")).filter_map(|line| {
            let (word, number) = line.trim_end_matches(';').split_once(" = ")?;
            Some((number.parse::<usize>().unwrap(), word))
        });
        assert_eq!(
            values.collect::<Vec<_>>(),
            words.iter().copied().enumerate().collect::<Vec<_>>()
        );
    }
    // One of these makes the others go: the definition groups them.
    let grouped = DEFINITION.matches("oneof ").count();
    assert_eq!(grouped, 5, "each group of the definition is marked in the table");
}
