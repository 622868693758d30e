//! Calls that meet a server which wants a login, or more than our token is good for.

use super::stage::{Page, Scene, called, done, upstream};
use crate::UpstreamState;
use crate::oauth::{Account, LoginPlaces};
use kernel::tool::call::{
    CallProgress, InputRequest, InputRequired, InputResponses, ToolError, ToolOutput,
};
use serde_json::json;

fn wants(called: Result<ToolOutput, ToolError>) -> (InputRequired, Page) {
    let wants = match called {
        Ok(ToolOutput::Wants(wants)) => *wants,
        other => panic!("a login is wanted: {other:?}"),
    };
    let Some(InputRequest::Url { url, message }) = wants.inputs.values().next() else {
        panic!("a page is wanted: {wants:?}")
    };
    assert!(message.contains("upstream `far`"), "{message}");
    let page = Page::read(url);
    (wants, page)
}

fn answered(wants: &InputRequired, action: &str) -> InputResponses {
    let inputs = wants.inputs.keys().map(|key| (key.clone(), json!({"action": action})));
    InputResponses {
        inputs: inputs.collect(),
        state: wants.state.clone(),
        ..InputResponses::default()
    }
}

#[tokio::test]
async fn a_call_waits_for_a_login_and_continues() {
    let scene = Scene::new().await;
    let remote = scene.ready().await;
    scene.rule(|rules| {
        rules.good.clear();
        rules.refresh = None;
    });
    let (wanted, page) = wants(called(&remote, InputResponses::default()).await);
    assert_eq!(upstream(&remote).check().await.unwrap_err().name, "UpstreamLogin");
    assert_eq!(upstream(&remote).status().state, UpstreamState::Login);
    // To open the page is not to have logged in: it is waited for.
    let (second, ()) = tokio::join!(called(&remote, answered(&wanted, "accept")), async {
        tokio::task::yield_now().await;
        remote.finish_login(page.back()).await.unwrap();
    });
    assert_eq!(second, done());
}

#[tokio::test]
async fn a_user_who_does_not_open_the_page_declines_the_call() {
    let scene = Scene::new().await;
    let remote = scene.ready().await;
    scene.rule(|rules| (rules.good, rules.refresh) = (Default::default(), None));
    let (wanted, _) = wants(called(&remote, InputResponses::default()).await);
    let declined = called(&remote, answered(&wanted, "decline")).await.unwrap_err();
    assert_eq!((declined.how, declined.fault.name.as_str()), (CallProgress::NotSent, "Declined"));
}

#[tokio::test]
async fn who_may_not_administer_is_shown_no_page() {
    let mut scene = Scene::new().await;
    scene.places = scene.places.map(|places| LoginPlaces { shown_to_callers: false, ..places });
    let remote = scene.ready().await;
    scene.rule(|rules| (rules.good, rules.refresh) = (Default::default(), None));
    let error = called(&remote, InputResponses::default()).await.unwrap_err();
    assert_eq!(
        (error.how == CallProgress::Unknown, error.fault.name.as_str()),
        (false, "UpstreamLogin")
    );
    assert!(error.fault.hint.unwrap().contains("waypost mcp login far"));
    assert!(upstream(&remote).login_url().is_some(), "who administers has it");
    assert!(!error.fault.message.contains("state="), "{}", error.fault.message);
}

#[tokio::test]
async fn a_step_up_challenge_is_resolved_by_another_login() {
    let scene = Scene::new().await;
    scene.rule(|rules| {
        rules.needs = [("tools/call", "write")].into();
        rules.scopes = "read".to_owned();
    });
    let remote = scene.ready().await;
    let far = upstream(&remote);
    let (wanted, page) = wants(called(&remote, InputResponses::default()).await);
    assert_eq!(page.field("scope"), Some("read write"), "what it was good for stays");
    assert_eq!(Page::of(far), page);
    assert_eq!(far.status().state, UpstreamState::Ready, "what it is good for goes on");
    assert_eq!(wants(called(&remote, InputResponses::default()).await).1, page);

    scene.rule(|rules| rules.scopes = "read write".to_owned());
    remote.finish_login(page.back()).await.unwrap();
    assert_eq!(called(&remote, answered(&wanted, "accept")).await, done());
    assert_eq!(far.login_url(), None);
}

#[tokio::test]
async fn scopes_already_granted_are_not_requested_again() {
    let scene = Scene::new().await;
    scene.rule(|rules| rules.needs = [("tools/call", "write")].into());
    let remote = scene.ready().await;
    let far = upstream(&remote);
    let (wanted, page) = wants(called(&remote, InputResponses::default()).await);
    // The server gives a token, but not for that.
    remote.finish_login(page.back()).await.unwrap();
    let error = called(&remote, answered(&wanted, "accept")).await.unwrap_err();
    assert_eq!((error.how, error.fault.name.as_str()), (CallProgress::Failed, "UpstreamForbidden"));
    assert!(error.fault.message.contains("`write` was asked for"), "{:?}", error.fault);
    assert_eq!(far.login_url(), None);
    assert!(far.check().await.is_ok(), "the others still work");
}

#[tokio::test]
async fn scopes_excluded_by_the_operator_are_not_requested() {
    let mut scene = Scene::new().await;
    scene.oauth.scopes = Some(vec!["read".to_owned()]);
    scene.rule(|rules| rules.needs = [("tools/call", "write")].into());
    let remote = scene.ready().await;
    let error = called(&remote, InputResponses::default()).await.unwrap_err();
    assert_eq!(error.fault.name, "UpstreamForbidden");
    assert!(error.fault.message.contains("leave out `write`"), "{:?}", error.fault);
}

#[tokio::test]
async fn endless_step_up_challenges_are_bounded() {
    let scene = Scene::new().await;
    scene.rule(|rules| rules.needs = [("server/discover", "admin")].into());
    let (remote, page) = scene.wanting().await;
    remote.finish_login(page.back()).await.unwrap();
    let far = upstream(&remote);
    // The first challenge named no scope; the second one does, and there is one more login.
    assert_eq!(far.check().await.unwrap_err().name, "UpstreamScope");
    assert_eq!(far.status().state, UpstreamState::Login);
    let page = Page::of(far);
    assert_eq!(page.field("scope"), Some("read admin"));
    remote.finish_login(page.back()).await.unwrap();
    let fault = far.check().await.unwrap_err();
    assert_eq!((fault.name.as_str(), far.login_url()), ("UpstreamForbidden", None));
    assert_eq!(far.status().state, UpstreamState::Failing);
}

#[tokio::test]
async fn no_secret_is_shown_even_if_the_server_repeats_it() {
    let scene = Scene::new().await;
    let remote = scene.ready().await;
    remote.stop().await;
    let account = Account::new(&scene.config(), &scene.parts()).unwrap();
    // Nothing is sent, and so nothing repeated, before this.
    assert!(account.pass().await.is_ok());
    assert_eq!(account.hidden().told("`token-1` and refresh-1"), "`***` and ***");
}
