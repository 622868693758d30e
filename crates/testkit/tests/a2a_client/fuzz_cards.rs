//! Cards as no agent should serve them: right ones of 1.0, 0.3 and AgentVault's profile, mangled.
//! Each is used or refused with a fault that names the agent, nothing panics, and where a signature
//! is required no card is believed that says something else than what was signed.

use crate::cards::Signer;
use crate::house::parts;
use kernel::values::fault::Fault;
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;
use testkit::fuzz::corpus::{Seed, seeds};
use testkit::fuzz::hunt::Hunt;
use testkit::fuzz::mangle::mangle;
use testkit::sim::rng::Rng;
use tokio::runtime::{Builder, Runtime};
use upstreams::{A2aConfig, CardPlace, Peer};
use wire::a2a::card::AgentCard;

/// How many cards the test command looks at.
const CARDS: u64 = 2_000;
const SIGNED: u64 = 2_000;

/// The faults of a card.
const FAULTS: [&str; 3] = ["CardUnusable", "AddressNotAllowed", "CardNotTrusted"];

/// Reads cards from a file, as an operator may give them.
struct Reader {
    runtime: Runtime,
    config: A2aConfig,
    path: PathBuf,
    _folder: TempDir,
    used: u64,
    refused: u64,
}

impl Reader {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("card.json");
        Self {
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            config: A2aConfig::new(CardPlace::File(path.clone())),
            path,
            _folder: folder,
            used: 0,
            refused: 0,
        }
    }

    /// Whether an agent with this card is used.
    fn reads(&mut self, card: &[u8]) -> Result<bool, String> {
        std::fs::write(&self.path, card).unwrap();
        let opened = self.runtime.block_on(async { Peer::open(&self.config, &parts()).await });
        match opened {
            Ok(_) => {
                self.used += 1;
                Ok(true)
            }
            Err(fault) => {
                self.refused += 1;
                check(&fault).map(|()| false)
            }
        }
    }

    /// Cards that are all used, or all refused, would show nothing.
    fn assert_both(&self, looked: u64) {
        let Self { used, refused, .. } = self;
        assert!(looked < 500 || (*used > 0 && *refused > 0), "{used} used, {refused} refused");
    }
}

fn check(fault: &Fault) -> Result<(), String> {
    let is_named = fault.message.starts_with("agent `");
    match FAULTS.contains(&fault.name.as_str()) && is_named {
        true => Ok(()),
        false => Err(format!("refused with {fault:?}")),
    }
}

fn mangled(rng: &mut Rng, all: &[Seed]) -> Vec<u8> {
    let mut pick = || rng.pick(all).map(|seed| seed.bytes.clone()).unwrap_or_default();
    let (card, other) = (pick(), pick());
    mangle(rng, &card, &other)
}

#[test]
fn every_card_is_used_or_refused() {
    let (all, mut reader) = (seeds("cards"), Reader::new());
    for seed in &all {
        assert_eq!(reader.reads(&seed.bytes), Ok(true), "{}", seed.name);
    }
    let make = |rng: &mut Rng| mangled(rng, &all);
    let looked = Hunt::new("cards", CARDS).run(make, |card| reader.reads(card).map(drop));
    reader.assert_both(looked);
}

/// What of a card is signed, without what is empty: that may be left out.
fn said(card: &[u8]) -> Value {
    // Of a key that stands there twice the last counts, as for who reads the card.
    let document: Value = serde_json::from_slice(card).unwrap_or_default();
    let card: AgentCard = serde_json::from_value(document).unwrap_or_default();
    without_empty(card.signed_content())
}

fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    };
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().map(|(name, member)| (name, without_empty(member)));
            Value::Object(kept.filter(|(_, member)| !is_empty(member)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        other => other,
    }
}

#[test]
fn no_card_is_believed_that_says_something_else_than_what_was_signed() {
    let (signer, stranger, mut reader) = (Signer::new(), Signer::new(), Reader::new());
    (reader.config.keys, reader.config.require_signature) = (vec![signer.key()], true);
    let seed = seeds("cards").into_iter().find(|seed| seed.name == "v1").unwrap();
    let card: AgentCard = serde_json::from_slice(&seed.bytes).unwrap();
    let content = card.signed_content();
    let right = signer.signed(content.clone()).to_string().into_bytes();
    let foreign = stranger.signed(content).to_string().into_bytes();
    assert_eq!(reader.reads(&right), Ok(true));
    assert_eq!(reader.reads(&foreign), Ok(false));
    let signed = said(&right);
    let make = |rng: &mut Rng| mangle(rng, &right, &foreign);
    let looked = Hunt::new("signed cards", SIGNED).run(make, |card| {
        match reader.reads(card)? && said(card) != signed {
            true => Err("it was believed, and something else was signed".to_owned()),
            false => Ok(()),
        }
    });
    reader.assert_both(looked);
}
