//! What never reaches a handler: strangers, broken bodies, unknown paths.

use crate::credentials::{Guarded, OPEN};
use crate::house::{House, read, refused, request, text};
use axum::body::Body;
use axum::http::{Method, Request};
use futures::StreamExt;
use kernel::identity::roles::Role;
use serde_json::json;

async fn with_headers(house: &House, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request = Request::builder().uri("/api/v1/sessions");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = house.send(request.body(Body::empty()).unwrap()).await;
    (answer.status, text(&answer.body["code"]))
}

#[tokio::test]
async fn strangers_are_refused() {
    let house = House::demo().await;
    let ours = ("host", "127.0.0.1:8420");
    for headers in
        [vec![ours], vec![("host", "[::1]:8420")], vec![ours, ("origin", "http://localhost:8420")]]
    {
        assert_eq!(with_headers(&house, &headers).await.0, 200, "{headers:?}");
    }
    let host = (403, "host_not_allowed".to_owned());
    let origin = (403, "origin_not_allowed".to_owned());
    for (headers, expected) in [
        (vec![], &host),
        (vec![("host", "evil.test:8420")], &host),
        (vec![("host", "localhost:80")], &host),
        (vec![ours, ("host", "evil.test")], &host),
        (vec![ours, ("origin", "http://evil.test")], &origin),
        (vec![ours, ("origin", "null")], &origin),
    ] {
        assert_eq!(&with_headers(&house, &headers).await, expected, "{headers:?}");
    }
    let request = Request::post("/sessions").header("host", "evil.test").body(Body::empty());
    let session = house.send(request.unwrap()).await;
    assert_eq!(session.status, 403);
    assert!(session.body["error"].is_string(), "the endpoint's error has its own shape");
    assert_eq!(house.get("/api/v1/sessions").await.body["items"], json!([]));
}

#[tokio::test]
async fn broken_bodies_are_told_apart_and_store_nothing() {
    let house = House::limited("body_bytes_max = 1000\nbody_depth_max = 8").await;
    let deep = format!("{{\"planId\": \"x\", \"input\": {}1{}}}", "[".repeat(8), "]".repeat(8));
    let large = format!("{{\"planId\": \"{}\"}}", "x".repeat(1000));
    for (path, body, expected) in [
        ("/api/v1/runs", "", refused(400, "no_body", &[])),
        ("/api/v1/runs", "{\"planId\": ", refused(400, "malformed_json", &[])),
        ("/api/v1/runs", "planId=x", refused(400, "malformed_json", &[])),
        ("/api/v1/runs", "[]", refused(422, "wrong_shape", &[""])),
        ("/api/v1/runs", "{\"session\": {}}", refused(422, "wrong_shape", &["/session"])),
        ("/api/v1/runs", deep.as_str(), refused(400, "too_deep", &[])),
        ("/api/v1/runs", large.as_str(), refused(413, "body_too_large", &[])),
        ("/sessions", large.as_str(), refused(413, "body_too_large", &[])),
        ("/sessions", "{\"sessionId\": [1]}", refused(422, "wrong_shape", &["/sessionId"])),
    ] {
        let answer = house.post_text(path, body).await;
        assert_eq!(answer.refusal(), expected, "{path} {body}: {answer:?}");
    }
    let malformed = house.post_text("/api/v1/runs", "{\n  \"planId\" 7}").await;
    assert!(text(&malformed.body["hint"]).starts_with("look at line 2, column"), "{malformed:?}");
    // A body that does not say how long it is is cut off at the limit.
    let chunks = (0..200).map(|_| Ok::<_, std::io::Error>("{\"sessionId\":".to_owned()));
    let body = Body::from_stream(futures::stream::iter(chunks));
    let endless = house.send(request(Method::POST, "/sessions", body)).await;
    assert_eq!(endless.refusal(), refused(413, "body_too_large", &[]));
    assert_eq!(house.get("/api/v1/sessions").await.body["items"], json!([]));
}

#[tokio::test]
async fn bodies_that_are_not_finished_leave_room_for_others_or_are_refused() {
    let house = House::limited("body_bytes_max = 1000\nbodies_bytes_max = 1000").await;
    let begun = futures::stream::iter([Ok::<_, std::io::Error>(" ".repeat(990))]);
    let endless = Body::from_stream(begun.chain(futures::stream::pending()));
    let mut unfinished = Box::pin(house.send(request(Method::POST, "/sessions", endless)));
    assert!(futures::poll!(unfinished.as_mut()).is_pending());
    let small = json!({"sessionId": "a"});
    for path in ["/sessions", "/api/v1/runs", "/rpc"] {
        let refusal = house.post(path, small.clone()).await;
        assert_eq!((refusal.status, refusal.header("retry-after")), (503, "1"), "{path}");
        let code = if path == "/rpc" { "/error/data/code" } else { "/code" };
        assert_eq!(refusal.body.pointer(code), Some(&json!("bodies_busy")), "{refusal:?}");
    }
    // What needs no body is answered, and the others are once the client has gone.
    assert_eq!(house.get("/livez").await.status, 200);
    drop(unfinished);
    assert_eq!(house.post("/sessions", small).await.status, 201);
}

#[tokio::test]
async fn no_answer_is_taken_for_what_it_is_not() {
    let house = House::demo().await;
    for path in ["/livez", "/metrics", "/openapi.json", "/api/v1/nope", "/mcp", "/sessions/none"] {
        let answer = house.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
    }
    let stream = house.open(request(Method::GET, "/api/v1/events", Body::empty())).await;
    assert_eq!(stream.headers()["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused_with_a_hint() {
    let house = House::demo().await;
    let near = house.get("/api/v1/sesions").await;
    assert_eq!(near.refusal(), refused(404, "not_found", &[]));
    assert_eq!(near.header("content-type"), "application/problem+json");
    assert_eq!(near.body["hint"], "did you mean `/api/v1/sessions`?");
    let nothing = house.get("/nothing-is-here").await;
    let listed = json!("`GET /openapi.json` lists the routes");
    assert_eq!((nothing.status, &nothing.body["hint"]), (404, &listed));
    let session = house.get("/sessions/a/b/c").await;
    assert_eq!(session.status, 404);
    assert!(session.body["error"].is_string(), "{session:?}");
    let method = house.delete("/livez").await;
    assert_eq!(method.refusal(), refused(405, "method_not_allowed", &[]));
    assert_eq!(method.body["hint"], "use GET");
    assert!(method.header("allow").contains("GET"), "{method:?}");
    let put = house.send(request(Method::PUT, "/api/v1/asks/x", Body::empty())).await;
    assert_eq!(put.body["hint"], "use GET or POST");
}

#[tokio::test]
async fn every_route_of_the_table_is_wired() {
    let house = House::demo().await;
    for (method, pattern) in server::routes() {
        let parts =
            pattern.split('/').map(|part| if part.starts_with('{') { "nope" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        let method: Method = method.parse().unwrap();
        let request = request(method.clone(), &path, Body::empty());
        if path == "/api/v1/events" {
            // It has no end.
            assert_eq!(house.open(request).await.status().as_u16(), 200);
            continue;
        }
        let answer = house.send(request).await;
        assert_ne!(answer.status, 405, "{method} {path}");
        let told = text(&answer.body["detail"]) + &text(&answer.body["error"]);
        assert!(!told.starts_with("there is no route"), "{method} {path}: {answer:?}");
        assert!(answer.status < 500, "{method} {path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_browser_gets_a_page_at_the_root_and_others_get_text() {
    let house = House::demo().await;
    let asked = |method: Method| {
        let mut asked = request(method, "/", Body::empty());
        let kinds = "text/html,application/xhtml+xml,*/*;q=0.8";
        asked.headers_mut().insert("accept", kinds.parse().unwrap());
        asked
    };
    let page = read(house.open(asked(Method::GET)).await).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    for text in ["<h1>", "waypost inbox", "/openapi.json", "/api/v1"] {
        assert!(page.text.contains(text), "no `{text}` in {}", page.text);
    }
    let posted = read(house.open(asked(Method::POST)).await).await;
    assert_eq!(posted.status, 404);
    for kinds in [None, Some("*/*"), Some("application/json")] {
        let mut plain = request(Method::GET, "/", Body::empty());
        if let Some(kinds) = kinds {
            plain.headers_mut().insert("accept", kinds.parse().unwrap());
        }
        let told = read(house.open(plain).await).await;
        assert_eq!((told.status, told.header("content-type")), (200, "text/plain; charset=utf-8"));
        assert!(told.text.contains("waypost inbox") && !told.text.contains('<'), "{}", told.text);
    }
}

#[tokio::test]
async fn the_root_page_tells_strangers_how_to_authenticate() {
    let guarded = Guarded::start(OPEN).await;
    for kinds in ["*/*", "application/json", "text/html"] {
        let told = guarded.get("/", &[("accept", kinds)]).await;
        assert_eq!(told.status, 200, "{kinds}: {told:?}");
        for text in ["Waypost", "/openapi.json", "waypost key add"] {
            assert!(told.text.contains(text), "{kinds}: no `{text}` in {}", told.text);
        }
    }
    let key = guarded.key(Role::Viewer).await;
    let told = guarded.get_as(&key, "/").await;
    assert_eq!((told.status, told.text.contains("waypost key add")), (200, false), "{told:?}");
    let unauthorized = refused(401, "unauthorized", &[]);
    assert_eq!(guarded.get_as("wp_wrong", "/").await.refusal(), unauthorized);
    for path in ["/nope", "/openapi.json"] {
        assert_eq!(guarded.get(path, &[]).await.refusal(), unauthorized, "{path}");
    }
    let posted = read(guarded.open(Method::POST, "/", &[], &json!({})).await).await;
    assert_eq!(posted.refusal(), unauthorized);
}
