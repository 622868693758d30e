//! Policy at the doors: each of them names an act, and what policy denies is refused there.

use crate::house::{House, read, request};
use axum::body::Body;
use axum::http::{Method, Request};
use kernel::call::{Caller, Verdict};
use kernel::caller::Act;
use kernel::contracts::Policy;
use kernel::policy::{Decision, Request as Asked};
use server::project::Project;
use server::{DOORS, Extra, Of, Right};
use std::sync::{Arc, Mutex};

/// Denies these acts.
#[derive(Default)]
struct Denying(Mutex<Vec<Act>>);

impl Denying {
    fn deny(&self, acts: &[Act]) {
        *self.0.lock().unwrap() = acts.to_vec();
    }
}

impl Policy for Denying {
    fn decide(&self, request: &Asked<'_>) -> Decision {
        match self.0.lock().unwrap().contains(&request.act) {
            true => Verdict::Deny("as the test wants".to_owned()).into(),
            false => Decision::allow(),
        }
    }
}

async fn house() -> (House, Arc<Denying>) {
    let policy = Arc::new(Denying::default());
    let extra = Extra { policy: Some(policy.clone()), ..Extra::default() };
    (House::furnished(Project::demo(), extra).await, policy)
}

/// A request at this door; what it names is not there.
fn at(method: &str, path: &str) -> Request<Body> {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    let path = parts.collect::<Vec<_>>().join("/");
    request(Method::from_bytes(method.as_bytes()).unwrap(), &path, Body::from("{}"))
}

#[tokio::test]
async fn what_a_door_keeps_itself_is_asked_about_there() {
    let (house, policy) = house().await;
    for (method, path, right) in DOORS {
        let Right::Door(act, of) = right else { continue };
        let answer = read(house.open(at(method, path)).await).await;
        assert_ne!(answer.body["code"], "forbidden", "{method} {path}: {answer:?}");
        policy.deny(&[*act]);
        let answer = read(house.open(at(method, path)).await).await;
        let denied = match (act, of) {
            (Act::Read, Of::Provider | Of::Upstream) => (404, Some("not_found")),
            _ => (403, Some("forbidden")),
        };
        let told = (answer.status, answer.body["code"].as_str());
        assert_eq!(told, denied, "{method} {path}: {answer:?}");
        policy.deny(&[]);
    }
}

#[tokio::test]
async fn who_may_do_nothing_changes_nothing_at_any_door() {
    let (house, policy) = house().await;
    let caller = Caller::new("default", "local");
    let before = house.engine.feed().bounds(&caller).await.unwrap();
    policy.deny(Act::ALL);
    for (method, path, right) in DOORS {
        let (Right::Engine(act) | Right::Door(act, _)) = right else { continue };
        let status = house.open(at(method, path)).await.status();
        let changes = *method != "GET" && *act != Act::Read && *path != "/rpc";
        assert!(!changes || status.is_client_error(), "{method} {path}: {status}");
    }
    assert_eq!(house.engine.feed().bounds(&caller).await.unwrap(), before);
}
