//! Who approves what a policy asks about: one whom every list names, and another person than those
//! who had a hand in the run.

use crate::WRITE;
use crate::world::{WAIT_MS, World, caller};
use engine::{Parts, RefusalCode};
use kernel::ask::{Ask, AskBody, CallDecision, Reply};
use kernel::contracts::Policy;
use kernel::contracts::policy::{Answerer, Decision, Obligation, Request};
use kernel::tool::call::{Caller, Verdict};
use kernel::values::caller::Act;
use serde_json::{Value, json};
use std::sync::Arc;

/// Asks about every call, and wants this of who answers.
struct Asking(Vec<Obligation>);

impl Policy for Asking {
    fn decide(&self, request: &Request<'_>) -> Decision {
        if request.act != Act::Call {
            return Decision::allow();
        }
        let (obligations, policies) = (self.0.clone(), vec!["large".into()]);
        let verdict = Verdict::Ask("it is large".to_owned());
        Decision { obligations, policies, ..Decision::from(verdict) }
    }
}

fn named(names: &[&str]) -> Obligation {
    Obligation::Answerers(names.iter().map(|name| Answerer::Principal((*name).into())).collect())
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("principal:{name}")).collect()
}

fn approve(ask: &Ask, arguments: Option<Value>) -> Reply {
    let AskBody::Approve { calls } = &ask.body else { panic!("{:?}", ask.body) };
    let arguments = arguments.map(Arc::new);
    let call_id = calls[0].call_id;
    let decision = CallDecision { call_id, approve: true, feedback: None, arguments };
    Reply::Approve { decisions: vec![decision] }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_another_person_whom_every_list_names_approves() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = vec![named(&["ann", "bob", "eve"]), named(&["ann", "bob"]), Obligation::Other];
    let policy = Arc::new(Asking(wanted));
    let change = |parts| Parts { policy, ..parts };
    let world = World::changed(folder.path(), &[WRITE], change).await;
    world.permits.add_permits(1);
    let request = world.request("write", json!({}), "s");
    let report = world.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
    let asked = &report.asks[0];
    let ask = &asked.row.ask;
    let answerers = ask.answerers.clone().unwrap();
    assert_eq!(answerers.lists, [list(&["ann", "bob", "eve"]), list(&["ann", "bob"])]);
    assert_eq!((answerers.other, answerers.involved), (true, vec!["ann".into()]));

    let asks = world.engine.asks();
    for who in ["ann", "eve", "zoe"] {
        let who = Caller::new("default", who);
        assert!(!asks.may_answer(&who, asked), "no question is put to {who:?}");
        let refused = asks.reply(&who, ask.id, approve(ask, None), None, WAIT_MS).await.err();
        let code = refused.map(|refusal| refusal.code);
        assert_eq!(code, Some(RefusalCode::Forbidden(Act::Answer)), "{who:?}");
    }
    let bob = Caller::new("default", "bob");
    assert!(asks.may_answer(&bob, asked));
    let edited = approve(ask, Some(json!({"n": 2})));
    let refused = asks.reply(&bob, ask.id, edited, None, WAIT_MS).await.err();
    assert_eq!(refused.map(|refusal| refusal.code), Some(RefusalCode::EditRefused));
    let done = asks.reply(&bob, ask.id, approve(ask, None), None, WAIT_MS).await.unwrap();
    assert_eq!(done.run.run.status.name(), "completed");
}
