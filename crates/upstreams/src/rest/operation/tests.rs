//! Operations as documents have them, and the tools that they come to.

use super::*;

fn read(paths: Value, trusted: bool) -> (Vec<Operation>, Vec<Warning>) {
    let document = json!({"openapi": "3.0.3", "paths": paths, "components": {"schemas": {
        "Pet": {"type": "object", "required": ["name"], "properties": {
            "id": {"type": "integer", "readOnly": true}, "name": {"type": "string"}}}}}});
    let document = OpenApi::parse(document.to_string()).unwrap();
    let supplied = SuppliedParameters::default();
    all(&document, &reading(&supplied, trusted), |_| true)
}

fn reading(supplied: &SuppliedParameters, trusted: bool) -> ReadOptions<'_> {
    let nodes_max = 1_000;
    let parts_max = 1_000_000;
    ReadOptions { supplied, trusted, nodes_max, parts_max, operations_max: 10 }
}

fn one(item: Value) -> Operation {
    one_at("/pets/{id}", item)
}

fn one_at(path: &str, item: Value) -> Operation {
    let (mut operations, warnings) = read(json!({path: item}), true);
    assert!(warnings.is_empty() && operations.len() == 1, "{warnings:?}");
    operations.remove(0)
}

fn refused(item: Value) -> String {
    let (operations, warnings) = read(json!({"/pets": item}), true);
    assert!(operations.is_empty(), "{operations:?}");
    warnings.into_iter().map(|warning| warning.why).collect::<Vec<_>>().join("; ")
}

#[test]
fn all_arguments_of_an_operation_form_one_schema() {
    let operation = one(json!({
        "parameters": [{"name": "id", "in": "path", "required": true,
            "schema": {"type": "integer"}}],
        "put": {"operationId": "putPet", "summary": "Replaces a pet", "tags": ["pets"],
            "parameters": [
                {"name": "id", "in": "query", "schema": {"type": "string"}},
                {"name": "X-Trace", "in": "header", "description": "for logs"}],
            "requestBody": {"required": true, "content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/Pet"}}}}}
    }));
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "query_id": {"type": "string"},
            "X-Trace": {"description": "for logs"},
            "name": {"type": "string"}
        },
        "required": ["id", "name"],
        "additionalProperties": false
    });
    assert_eq!(operation.input_schema, schema);
    assert_eq!((operation.name.as_str(), operation.title.as_str()), ("putPet", "Replaces a pet"));
    assert_eq!(operation.description, "Replaces a pet");
    assert_eq!((operation.reach, operation.idempotent), (Reach::Writes, true));
    assert!(operation.keyed && operation.tags == ["pets"]);
}

#[test]
fn tool_names_come_from_operation_ids_or_paths() {
    let id = |id: &str| json!({"operationId": id});
    let (operations, warnings) = read(
        json!({
            "/a": {"get": id("list all"), "post": {}},
            "/a/b-c": {"get": {}},
            "/a/{b}": {"get": {"parameters": [{"name": "b", "in": "path"}]}},
            "/twice": {"get": id("list_all"), "post": id("postTwice")},
            "/z": {"get": id("postTwice"), "delete": id("get_z")}
        }),
        true,
    );
    let names: Vec<&str> = operations.iter().map(|one| one.name.as_str()).collect();
    let expected = [
        "list_all", "post_a", "get_a_b_c", "get_a_by_b", "get_twice", "postTwice", "get_z",
        "delete_z",
    ];
    assert_eq!(names, expected);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn a_tool_name_does_not_depend_on_filters() {
    let document = json!({"openapi": "3.0.3", "paths": {
        "/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "x"}}}});
    let document = OpenApi::parse(document.to_string()).unwrap();
    let supplied = SuppliedParameters::default();
    for wanted in ["x", "get_b"] {
        let (operations, _) = all(&document, &reading(&supplied, true), |name| name == wanted);
        let names: Vec<&str> = operations.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, [wanted]);
    }
}

#[test]
fn duplicate_tool_names_are_made_unique() {
    let date = |name: &str, about: &str| json!({"name": name, "in": "query", "description": about});
    let operation = one_at(
        "/x",
        json!({"get": {"parameters": [date("date<", "Before."), date("date", ""),
            date("date>", "After.")]}}),
    );
    let sent: Vec<(&str, &str)> = operation
        .parameters
        .iter()
        .map(|parameter| (parameter.argument.as_str(), parameter.name.as_str()))
        .collect();
    let expected = [("date", "date"), ("query_date", "date<"), ("query_date_2", "date>")];
    assert_eq!(sent, expected);
    let properties = &operation.input_schema["properties"];
    assert_eq!(properties["query_date"]["description"], "`date<` of the query. Before.");
    assert_eq!(properties["query_date_2"]["description"], "`date>` of the query. After.");
    let many: Vec<Value> =
        (0..20).map(|count| date(&format!("a{}", "<".repeat(count)), "")).collect();
    assert!(refused(json!({"get": {"parameters": many}})).contains("many others are the same"));
}

#[test]
fn the_sent_path_has_no_fragment_and_a_path_with_a_query_is_refused() {
    let operation = one_at("/files/{id}#share", json!({"get": {"operationId": "share"}}));
    let filled = operation.path.filled(|name| Ok::<_, ()>(format!("<{name}>")));
    assert_eq!(filled.unwrap(), "/files/<id>");
    let (operations, warnings) = read(json!({"/now?city={city}": {"get": {}}}), true);
    assert!(operations.is_empty() && warnings[0].why.contains("`?`"), "{warnings:?}");
}

#[test]
fn repeated_texts_are_truncated_and_counted() {
    let long = "x".repeat(100_000);
    let (operations, warnings) = read(
        json!({"/a": {"get": {"summary": long, "description": long, "tags": vec![&long; 99],
            "parameters": [{"name": "a", "in": "query", "description": long}]}}}),
        true,
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(operations[0].title.len(), TITLE_CHARS_MAX + 3);
    assert_eq!(operations[0].tags.len(), TAGS_MAX);
    let document = json!({"openapi": "3.1.0", "paths": {
        "/a": {"get": {}}, "/b": {"$ref": "#/x"}, "/c": {"$ref": "#/x"}, "/d": {"$ref": "#/x"}},
        "x": {"get": {"parameters": [{"name": "a", "in": "query", "description": long}]}}});
    let document = OpenApi::parse(document.to_string()).unwrap();
    let supplied = SuppliedParameters::default();
    let reading = ReadOptions { parts_max: 2_000, ..reading(&supplied, true) };
    let (operations, warnings) = all(&document, &reading, |_| true);
    assert_eq!((operations.len(), warnings.len()), (2, 2), "{warnings:?}");
    assert!(
        warnings[0].why.contains("the schemas of the document have too many parts"),
        "{warnings:?}"
    );
}

#[test]
fn reach_follows_the_method_and_trust() {
    let get = |extra: Value| {
        let mut fields = json!({"operationId": "x"});
        fields.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        fields
    };
    for (method, extra, trusted, effect) in [
        ("get", json!({}), false, (Reach::Reads, true)),
        ("options", json!({}), false, (Reach::Reads, true)),
        ("put", json!({}), false, (Reach::Writes, true)),
        ("delete", json!({}), false, (Reach::Writes, true)),
        ("post", json!({}), false, (Reach::Writes, false)),
        ("patch", json!({}), true, (Reach::Writes, false)),
        ("post", json!({"x-waypost-reach": "reads"}), true, (Reach::Reads, true)),
        ("post", json!({"x-waypost-reach": "reads"}), false, (Reach::Writes, false)),
        ("get", json!({"x-waypost-reach": "writes"}), false, (Reach::Writes, false)),
        ("put", json!({"x-waypost-reach": "runs"}), false, (Reach::Runs, false)),
        ("post", json!({"x-waypost-idempotent": true}), true, (Reach::Writes, true)),
        ("post", json!({"x-waypost-idempotent": true}), false, (Reach::Writes, false)),
        ("put", json!({"x-waypost-idempotent": false}), false, (Reach::Writes, false)),
    ] {
        let (operations, _) = read(json!({"/x": {method: get(extra.clone())}}), trusted);
        let found = (operations[0].reach, operations[0].idempotent);
        assert_eq!(found, effect, "{method} {extra} {trusted}");
    }
}

#[test]
fn uncallable_operations_are_left_out_individually() {
    for (item, told) in [
        (
            json!({"get": {"responses": {"200": {"content": {"text/event-stream": {}}}}}}),
            "a stream of events",
        ),
        (
            json!({"get": {"parameters": [
                {"name": "a", "in": "query", "schema": {"$ref": "x.yaml"}}]}}),
            "leads out of the document",
        ),
        (
            json!({"post": {"requestBody": {"required": true, "content": {
                "multipart/mixed": {}}}}}),
            "`multipart/mixed`",
        ),
    ] {
        let told_of = refused(item);
        assert!(told_of.contains(told), "{told_of}");
    }
    let (operations, warnings) = read(json!({"/a{?b}": {"get": {}}, "/c": {"get": {}}}), true);
    assert_eq!(operations.len(), 1);
    let why = "`{?b}` of its path is not among its parameters".to_owned();
    assert_eq!(warnings, [Warning { operation: "GET /a{?b}".to_owned(), why }]);
}

#[test]
fn an_undeclared_path_parameter_is_a_string() {
    let operation = one_at(
        "/x/{id}/{file-name}/{id}",
        json!({"get": {"parameters": [
        {"name": "id", "in": "query", "schema": {"type": "integer"}}]}}),
    );
    let places: Vec<(&str, ParameterLocation)> = operation
        .parameters
        .iter()
        .map(|parameter| (parameter.argument.as_str(), parameter.location))
        .collect();
    assert_eq!(
        places,
        [
            ("id", ParameterLocation::Path),
            ("file-name", ParameterLocation::Path),
            ("query_id", ParameterLocation::Query)
        ]
    );
    assert_eq!(operation.input_schema["properties"]["id"], json!({"type": "string"}));
    assert_eq!(operation.input_schema["required"], json!(["id", "file-name"]));
}

#[test]
fn operations_over_the_limit_are_not_read() {
    let paths = (10..30).map(|number| (format!("/p{number}"), json!({"get": {}})));
    let (operations, warnings) = read(Value::Object(paths.collect()), true);
    assert_eq!((operations.len(), warnings.len()), (10, 1));
    assert_eq!(warnings[0].operation, "GET /p20");
}

#[test]
fn the_idempotency_header_is_not_an_argument_and_server_variables_are_filled() {
    let operation = one(json!({"get": {
        "parameters": [{"name": "id", "in": "path"}, {"name": "Idempotency-Key", "in": "header"}],
        "servers": [{"url": "https://{region}.a.test/v{n}", "variables": {
            "region": {"default": "eu"}, "n": {"default": "2"}}}]}}));
    assert!(operation.keyed);
    assert_eq!(operation.parameters.len(), 1);
    assert_eq!(operation.server.as_deref(), Some("https://eu.a.test/v2"));
}
