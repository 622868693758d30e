//! Hostile input for what reads it first: the frame of JSON-RPC messages, and the names that go out
//! to other systems. The endpoints behind them are hunted through in `crates/server/tests/it`.

use kernel::values::names::{Alphabet, inward, outward};
use serde_json::Value;
use serde_json::value::RawValue;
use testkit::fuzz::answers::{Said, check_message};
use testkit::fuzz::corpus::{Seed, seeds};
use testkit::fuzz::hunt::Hunt;
use testkit::fuzz::mangle::mangle;
use testkit::sim::rng::Rng;
use wire::jsonrpc::{Frame, INVALID_REQUEST, Id, PARSE_ERROR, RpcError};
use wire::jsonrpc::{error, notification, request, result};

/// How many inputs the test command looks at.
const MESSAGES: u64 = 6_000;
const NAMES: u64 = 20_000;

/// Letters that names are written with, and those that must be written otherwise.
const LETTERS: &[&str] =
    &["a", "Z", "0", "f", "_", "-", ".", ":", "::", "/", " ", "_-", "_-2", "\u{0}", "é", "🦀", "+"];

macro_rules! ensure {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(format!($($why)*));
        }
    };
}

#[test]
fn every_corpus_message_is_read() {
    for Seed { name, bytes } in seeds("mcp").into_iter().chain(seeds("rpc")) {
        frame(&bytes).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let is_list = bytes.starts_with(b"[");
        assert_eq!(serde_json::from_slice::<Frame<'_>>(&bytes).is_ok(), !is_list, "{name}");
    }
}

#[test]
fn mangled_messages_are_read_or_refused_and_ids_stay_verbatim() {
    let all: Vec<Seed> = seeds("mcp").into_iter().chain(seeds("rpc")).collect();
    let make = |rng: &mut Rng| {
        let pick = |rng: &mut Rng| rng.pick(&all).map_or(Vec::new(), |seed| seed.bytes.clone());
        let message = pick(rng);
        let other = pick(rng);
        mangle(rng, &message, &other)
    };
    let mut read = 0u64;
    let looked = Hunt::new("frame", MESSAGES).run(make, |bytes| {
        read += u64::from(frame(bytes)?);
        Ok(())
    });
    // Messages that are all refused would show nothing about those that are read.
    assert!(looked < 1_000 || (looked / 10..looked).contains(&read), "{read} of {looked}");
}

/// Reads a message and answers it in every way; whether it was a request that could be read.
fn frame(bytes: &[u8]) -> Result<bool, String> {
    let refused = |code: i64, why: String| -> Result<bool, String> {
        let answer = error(None, &RpcError::new(code, why));
        let said = check_message(&answer, &[])?;
        ensure!(said == Said::Response(Some(code)), "refused with {answer}");
        Ok(false)
    };
    // A list would be taken for the members of the frame; every endpoint looks at that first.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return refused(INVALID_REQUEST, "it is no object".to_owned());
    }
    let frame: Frame<'_> = match serde_json::from_slice(bytes) {
        Ok(frame) => frame,
        Err(error) => return refused(PARSE_ERROR, error.to_string()),
    };
    let Some(raw) = frame.id else { return Ok(false) };
    let Some(id) = Id::read(raw) else {
        return refused(INVALID_REQUEST, format!("`{}` is no id", raw.get()));
    };
    ensure!(id.as_json() == raw.get(), "the id {} became {id}", raw.get());
    let asked = [raw.get().to_owned()];
    let method = frame.method.as_deref().unwrap_or("none");
    let params = frame.params.map_or("{}", RawValue::get);

    let answer = result(&id, params);
    ensure!(check_message(&answer, &asked)? == Said::Response(None), "answered with {answer}");
    let again: Frame<'_> = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
    let same = again.result.map(RawValue::get) == Some(params);
    ensure!(same, "the result changed on its way: {answer}");
    let why = RpcError::new(-1, format!("`{method}` failed")).data(Value::from(params));
    let failed = error(Some(&id), &why);
    ensure!(check_message(&failed, &asked)? == Said::Response(Some(-1)), "failed with {failed}");

    // What a client sends reaches another one only as a value; what is none is refused before.
    let value: Value = serde_json::from_str(params).unwrap_or_default();
    let told = check_message(&notification(method, &value), &[])?;
    ensure!(told == Said::Notification(method.to_owned()), "told {told:?}");
    let write = |text: &mut Vec<u8>| text.extend_from_slice(value.to_string().as_bytes());
    let asks = check_message(&request(&id, method, write), &[])?;
    ensure!(asks == Said::Request(method.to_owned()), "asks {asks:?}");
    Ok(true)
}

#[test]
fn encoded_names_are_reversible_and_unique() {
    let make = |rng: &mut Rng| {
        let mut name = String::new();
        for _ in 0..rng.below(24) {
            if rng.chance(85) {
                name.push_str(rng.pick(LETTERS).copied().unwrap_or_default());
            } else if let Some(letter) = char::from_u32(rng.below(0x11_0000) as u32) {
                name.push(letter);
            }
        }
        name
    };
    Hunt::new("names", NAMES).run(make, |name| {
        for alphabet in [Alphabet::Mcp, Alphabet::Model] {
            let written = outward(name, alphabet);
            let is_plain = |byte: u8| {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'_' | b'-')
                    || (byte == b'.' && alphabet == Alphabet::Mcp)
            };
            ensure!(written.bytes().all(is_plain), "{name:?} is written {written:?}");
            let back = inward(&written, alphabet);
            ensure!(back.as_ref() == Some(name), "{name:?}, {written:?}, came back as {back:?}");
            // The other way round: what is taken for a written name is written so.
            if let Some(read) = inward(name, alphabet) {
                let again = outward(&read, alphabet);
                ensure!(again == *name, "{name:?} is read as {read:?}, written {again:?}");
            }
        }
        Ok(())
    });
}
