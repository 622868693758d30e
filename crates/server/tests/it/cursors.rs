//! Cursors of lists: opaque, the same after a restart, and good for one list under one filter.

use crate::api_keys::{ADMIN, asking, get};
use crate::house::{House, encoded, refused, request, text};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::contracts::{PageRequest, SessionFilter};
use kernel::tool::call::Caller;
use project::folder::Project;
use serde_json::{Value, json};
use std::fs;

const SESSIONS: &str = "/api/v1/sessions";

/// A house in which four runs wait for somebody.
async fn house() -> House {
    let house = House::demo().await;
    for _ in 0..4 {
        house.greeting().await;
    }
    house
}

/// The path with one more parameter.
fn with(path: &str, parameter: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}{parameter}")
}

/// A page of one item after this cursor.
async fn page(house: &House, path: &str, cursor: Option<&Value>) -> Value {
    let path = with(path, "limit=1");
    let path = match cursor {
        Some(cursor) => with(&path, &format!("cursor={}", encoded(cursor))),
        None => path,
    };
    let answer = house.get(&path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.body
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_list_and_filter() {
    let house = house().await;
    let input = json!({"a": 1, "b": 1});
    for key in ["a", "b"] {
        let run = json!({"planId": "math::conditional_add", "input": input, "session": key});
        house.run(run).await;
    }
    let lists = [
        SESSIONS,
        "/api/v1/sessions?status=waiting",
        "/api/v1/sessions?space=session",
        "/api/v1/sessions/a/history",
        "/api/v1/sessions/b/history",
        "/api/v1/asks",
        "/api/v1/asks?kind=fill",
        "/api/v1/plans",
        "/api/v1/tools",
    ];
    for from in lists {
        let cursor = page(&house, from, None).await["nextCursor"].clone();
        for at in lists {
            let answer = house.get(&with(at, &format!("cursor={}", encoded(&cursor)))).await;
            if at == from {
                assert_eq!(answer.status, 200, "{from}: {answer:?}");
                continue;
            }
            assert_eq!(answer.refusal(), refused(400, "bad_cursor", &[]), "{from} at {at}");
            assert!(text(&answer.body["hint"]).contains("same filter"), "{answer:?}");
        }
    }
    // The size of a page is no filter, and neither is what holds without being said.
    let cursor = encoded(&page(&house, "/api/v1/asks", None).await["nextCursor"]);
    let rest = house.get(&format!("/api/v1/asks?status=open&limit=9&cursor={cursor}")).await;
    assert_eq!(rest.body["items"].as_array().map(Vec::len), Some(3), "{rest:?}");
}

#[tokio::test]
async fn no_row_can_be_read_from_a_cursor() {
    let house = house().await;
    let caller = Caller::new("default", "local");
    let mut place = None;
    let mut cursor = None;
    let mut cursors: Vec<String> = Vec::new();
    loop {
        let plain = PageRequest { cursor: place.clone(), limit: 1 };
        let filter = SessionFilter::default();
        let found = house.engine.sessions().list(&caller, &filter, &plain).await.unwrap();
        let shown = page(&house, SESSIONS, cursor.as_ref()).await;
        assert_eq!(shown["items"][0]["id"], found.items[0].id.to_string());
        let Some(next) = found.next_cursor else { break };
        next.parse::<u64>().expect("the store counts rows");
        let sealed = text(&shown["nextCursor"]);
        let bytes = URL_SAFE_NO_PAD.decode(sealed.strip_prefix('w').unwrap()).unwrap();
        assert_eq!((bytes.len(), sealed.len()), (30, 41), "{sealed}");
        place = Some(next);
        cursor = Some(shown["nextCursor"].clone());
        cursors.push(sealed);
    }
    assert_eq!(cursors.len(), 3);
    for pair in cursors.windows(2) {
        let like = pair[0].bytes().zip(pair[1].bytes()).skip(8).filter(|(a, b)| a == b).count();
        assert!(like < 10, "one after the other look alike: {pair:?}");
    }
}

#[tokio::test]
async fn a_restart_changes_no_cursor() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(Project::demo, &data, None).await;
    for _ in 0..2 {
        house.greeting().await;
    }
    let before = page(&house, SESSIONS, None).await["nextCursor"].clone();
    let rest = page(&house, SESSIONS, Some(&before)).await["items"][0]["id"].clone();
    stopper.stop().await;
    drop(house);

    let (house, stopper) = House::over(Project::demo, &data, None).await;
    assert_eq!(page(&house, SESSIONS, None).await["nextCursor"], before);
    assert_eq!(page(&house, SESSIONS, Some(&before)).await["items"][0]["id"], rest);
    stopper.stop().await;
}

#[tokio::test]
async fn a_new_secret_takes_the_cursors_of_the_old_one_until_that_is_gone() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(Project::demo, &data, None).await;
    for _ in 0..2 {
        house.greeting().await;
    }
    let before = page(&house, SESSIONS, None).await["nextCursor"].clone();
    let rest = page(&house, SESSIONS, Some(&before)).await["items"][0]["id"].clone();
    stopper.stop().await;
    drop(house);

    let file = data.path().join("data/secret.key");
    let new = "5a".repeat(32);
    let old = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{new}\n{old}")).unwrap();
    let (house, stopper) = House::over(Project::demo, &data, None).await;
    assert_eq!(page(&house, SESSIONS, Some(&before)).await["items"][0]["id"], rest);
    let after = page(&house, SESSIONS, None).await["nextCursor"].clone();
    assert_ne!(after, before);
    stopper.stop().await;
    drop(house);

    fs::write(&file, new).unwrap();
    let (house, stopper) = House::over(Project::demo, &data, None).await;
    assert_eq!(page(&house, SESSIONS, Some(&after)).await["items"][0]["id"], rest);
    let path = format!("{SESSIONS}?cursor={}", encoded(&before));
    let answer = house.get(&path).await;
    assert_eq!(answer.refusal(), refused(400, "bad_cursor", &[]));
    assert!(answer.body.to_string().contains("secret key"), "{answer:?}");
    stopper.stop().await;
}

#[tokio::test]
async fn a_row_number_is_no_cursor() {
    let (house, local) = (asking("").await, house().await);
    for path in [SESSIONS, "/api/v1/asks", "/api/v1/plans", "/api/v1/tools"] {
        for made_up in ["1", "42", "math::add"] {
            let path = format!("{path}?cursor={made_up}");
            for answer in [get(&house, ADMIN, &path).await, local.get(&path).await] {
                assert_eq!(answer.refusal(), refused(400, "bad_cursor", &[]), "{path}");
            }
        }
    }
    // Else the last row of all realms could be found by trying.
    let mut follow = request(Method::GET, "/api/v1/events?after=1-0", Body::empty());
    follow.headers_mut().insert("x-api-key", ADMIN.parse().unwrap());
    assert_eq!(house.open(follow).await.status(), StatusCode::BAD_REQUEST);
}
