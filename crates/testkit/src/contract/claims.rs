//! Claims of subjects' newest tokens: one value for each subject.

use super::driver::got;
use super::scene::Scene;
use kernel::contracts::identity::claims::SubjectClaims;
use serde_json::json;

fn claims(subject: &str, role: &str, issued: i64) -> SubjectClaims {
    let claims = json!({
        "subject": subject,
        "issuer": "corp",
        "realms": {"default": [role]},
        "issued": issued,
    });
    serde_json::from_value(claims).unwrap_or_else(|error| panic!("{error}"))
}

pub fn claims_of_a_subject_take_the_place_of_those_before(scene: Scene) {
    let store = scene.claims();
    assert_eq!(got(store.all_claims()), []);
    let ann = claims("corp:ann", "member", 7);
    let bob = claims("corp:bob", "viewer", 8);
    got(store.put_claims(&bob));
    got(store.put_claims(&claims("corp:ann", "admin", 6)));
    got(store.put_claims(&ann));
    assert_eq!(got(store.all_claims()), [ann, bob]);
}

pub fn claims_are_there_after_a_restart_until_they_are_removed(scene: Scene) {
    let ann = claims("corp:ann", "member", 7);
    let bob = claims("corp:bob", "viewer", 8);
    got(scene.claims().put_claims(&ann));
    got(scene.claims().put_claims(&bob));
    let scene = scene.reopened();
    assert_eq!(got(scene.claims().all_claims()), [ann.clone(), bob.clone()]);
    got(scene.claims().remove_claims(&["corp:zoe".into(), ann.subject]));
    assert_eq!(got(scene.claims().all_claims()), std::slice::from_ref(&bob));
    assert_eq!(got(scene.reopened().claims().all_claims()), [bob]);
}
