//! Documents of every kind that is taken, and bodies and paths as they are written: from a document
//! to a call and back.

use super::{Written, answer, call, json_answer, loaded, parts, peer};
use crate::RemoteParts;
use crate::config::{Document, RestConfig};
use kernel::contracts::Tool;
use kernel::limits::Limits;
use serde_json::{Value, json};
use std::sync::Arc;

/// A stock with each kind of parameter that Swagger has, and two operations that no one can call.
const STOCK: &str = "
swagger: '2.0'
info: {title: Stock, version: '1'}
basePath: /stock
consumes: [application/json]
produces: [application/json]
parameters:
  shelf: {name: shelf, in: path, required: true, type: string, pattern: '^[A-Z]+$'}
paths:
  /shelves/{shelf}/items:
    parameters: [{$ref: '#/parameters/shelf'}]
    get:
      operationId: listItems
      parameters:
        - {name: colours, in: query, type: array, items: {type: string}, collectionFormat: pipes}
        - {name: sizes, in: query, type: array, items: {type: integer}, collectionFormat: multi}
        - {name: odd, in: query, type: array, items: {type: string}, collectionFormat: tsv}
        - {name: X-Site, in: header, type: string}
      responses:
        200: {description: items, schema: {type: array, items: {$ref: '#/definitions/Item'}}}
    post:
      operationId: addItem
      parameters:
        - {name: item, in: body, required: true, schema: {$ref: '#/definitions/Item'}}
      responses: {201: {description: made}}
  /labels:
    post:
      operationId: printLabel
      consumes: [application/x-www-form-urlencoded]
      parameters:
        - {name: text, in: formData, required: true, type: string}
        - {name: copies, in: formData, type: integer, default: 1}
        - {name: sizes, in: formData, type: array, items: {type: integer}}
      responses: {204: {description: printed}}
  /photos:
    post:
      operationId: addPhoto
      consumes: [multipart/form-data]
      parameters:
        - {name: photo, in: formData, required: true, type: file, description: The picture.}
        - {name: note, in: formData, type: string}
      responses: {201: {description: kept}}
  /watch:
    get:
      operationId: watch
      produces: [text/event-stream]
      responses: {200: {description: changes}}
  /broken:
    post:
      operationId: broken
      parameters:
        - {name: a, in: formData, type: string}
        - {name: b, in: body, schema: {}}
      responses: {200: {description: never}}
definitions:
  Item:
    type: object
    required: [id, name]
    properties:
      id: {type: integer, readOnly: true}
      name: {type: string}
      note: {type: string, x-nullable: true}
      parts: {type: array, items: {$ref: '#/definitions/Item'}}
";

/// A desk whose paths and bodies are written in the less usual ways.
const DESK: &str = "
openapi: 3.0.3
info: {title: Desk, version: '1'}
paths:
  /maps{point}/tiles{format}:
    get:
      operationId: getTile
      parameters:
        - name: point
          in: path
          required: true
          style: matrix
          explode: true
          schema: {type: object, properties: {x: {type: integer}, y: {type: integer}}}
        - {name: format, in: path, required: true, style: label, schema: {type: string}}
      responses: {200: {description: a tile}}
  /reports:
    post:
      operationId: addReport
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema: {$ref: '#/components/schemas/Report'}
            encoding: {pages: {contentType: 'application/pdf, image/*'}}
      responses: {201: {description: kept}}
components:
  schemas:
    Report:
      type: object
      required: [about]
      properties:
        about: {type: object, properties: {title: {type: string}}}
        tags: {type: array, items: {type: string}}
        pages: {type: array, items: {type: string, format: binary}}
";

fn names(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.spec().name.as_str()).collect()
}

fn schema(tools: &[Arc<dyn Tool>], name: &str) -> Arc<Value> {
    let tool = tools.iter().find(|tool| tool.spec().name.as_str() == name).unwrap();
    tool.spec().input_schema.clone()
}

/// The boundary that a request names, without which nobody could read it.
fn boundary(request: &str) -> &str {
    let head = "content-type: multipart/form-data; boundary=";
    request.lines().find_map(|line| line.strip_prefix(head)).unwrap()
}

#[tokio::test]
async fn a_swagger_document_becomes_callable_tools() {
    let done = json_answer("200 OK", &json!("done"));
    let document = answer("200 OK", "content-type: application/yaml\r\n", STOCK);
    let answers = vec![document, done.clone(), done.clone(), done.clone(), done];
    let (address, peer) = peer(answers).await;
    let document = Document::Url(format!("http://{address}/docs/swagger.yaml"));
    let tools = loaded(RestConfig::new(document), &parts()).await.unwrap();
    let expected = ["shop.printLabel", "shop.addPhoto", "shop.listItems", "shop.addItem"];
    assert_eq!(names(&tools), expected);
    let item = schema(&tools, "shop.addItem");
    assert_eq!(item["required"], json!(["shelf", "name"]));
    assert_eq!(item["properties"]["note"], json!({"type": ["string", "null"]}));
    let inner = json!({"type": "array", "items": {"$ref": "#/$defs/Item"}});
    assert_eq!(item["properties"]["parts"], inner);
    let shelf = json!({"type": "string", "pattern": "^[A-Z]+$"});
    assert_eq!(schema(&tools, "shop.listItems")["properties"]["shelf"], shelf);

    for (name, arguments) in [
        (
            "shop.listItems",
            json!({"shelf": "A", "colours": ["red", "blue"], "sizes": [1, 2], "X-Site": "north"}),
        ),
        ("shop.addItem", json!({"shelf": "A", "name": "Box", "note": null})),
        ("shop.printLabel", json!({"text": "Box A", "sizes": [4, 5]})),
        (
            "shop.addPhoto",
            json!({"note": "new",
                "photo": {"base64": "aGk=", "filename": "a.png", "mediaType": "image/png"}}),
        ),
    ] {
        assert_eq!(call(&tools, name, arguments).await.unwrap(), json!("done"), "{name}");
    }
    let sent = peer.await.unwrap();
    let list = "GET /stock/shelves/A/items?colours=red%7Cblue&sizes=1&sizes=2 HTTP/1.1\r\n";
    assert!(sent[1].starts_with(list) && sent[1].contains("x-site: north\r\n"), "{sent:?}");
    assert!(sent[2].starts_with("POST /stock/shelves/A/items HTTP/1.1\r\n"), "{sent:?}");
    assert!(sent[2].ends_with("\r\n\r\n{\"name\":\"Box\",\"note\":null}"), "{sent:?}");
    assert!(sent[3].contains("content-type: application/x-www-form-urlencoded\r\n"), "{sent:?}");
    assert!(sent[3].ends_with("\r\n\r\nsizes=4,5&text=Box%20A"), "{sent:?}");
    let divider = boundary(&sent[4]);
    let body = format!(
        "--{divider}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nnew\r\n\
         --{divider}\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\n\
         Content-Type: image/png\r\n\r\nhi\r\n--{divider}--\r\n"
    );
    assert!(sent[4].ends_with(&format!("\r\n\r\n{body}")), "{sent:?}");
}

#[tokio::test]
async fn matrix_and_label_styles_and_file_parts_are_encoded() {
    let done = json_answer("200 OK", &json!("done"));
    let (address, peer) = peer(vec![done.clone(), done]).await;
    let file = Written::new("desk", DESK);
    let base_url = Some(format!("http://{address}/v1"));
    let config = RestConfig { base_url, ..RestConfig::new(file.document()) };
    let tools = loaded(config, &parts()).await.unwrap();
    assert_eq!(names(&tools), ["shop.getTile", "shop.addReport"]);
    let tile = json!({"point": {"x": 1, "y": -2}, "format": "png"});
    assert_eq!(call(&tools, "shop.getTile", tile).await.unwrap(), json!("done"));
    let pages = schema(&tools, "shop.addReport")["properties"]["pages"].clone();
    assert_eq!(pages["items"]["properties"]["text"], json!({"type": "string"}));
    let report = json!({"about": {"title": "Week"}, "tags": ["a", "b"],
        "pages": [{"base64": "aGk=", "filename": "one.pdf"}, {"text": "two"}]});
    assert_eq!(call(&tools, "shop.addReport", report).await.unwrap(), json!("done"));
    let sent = peer.await.unwrap();
    assert!(sent[0].starts_with("GET /v1/maps;x=1;y=-2/tiles.png HTTP/1.1\r\n"), "{sent:?}");
    let divider = boundary(&sent[1]);
    let (_, body) = sent[1].split_once("\r\n\r\n").unwrap();
    let found = body.split(divider).map(|part| part.trim_matches(['-', '\r', '\n']));
    let found: Vec<&str> = found.collect();
    let field = "Content-Disposition: form-data; name=";
    let page = |name: &str| {
        format!("{field}\"pages\"; filename=\"{name}\"\r\nContent-Type: application/pdf\r\n\r\n")
    };
    let expected = [
        String::new(),
        format!("{field}\"about\"\r\nContent-Type: application/json\r\n\r\n{{\"title\":\"Week\"}}"),
        format!("{}hi", page("one.pdf")),
        format!("{}two", page("pages")),
        format!("{field}\"tags\"\r\n\r\na"),
        format!("{field}\"tags\"\r\n\r\nb"),
        String::new(),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_large_document_is_read_and_one_that_is_too_large_names_its_limit() {
    let filler = "x".repeat(500_000);
    let operation = |number: usize| {
        let example = json!({"200": {"content": {"application/json": {"example": &filler}}}});
        json!({"get": {"operationId": format!("read{number}"), "responses": example}})
    };
    let paths = (0..20).map(|number| (format!("/{number}"), operation(number)));
    let paths: serde_json::Map<String, Value> = paths.collect();
    let text = json!({"openapi": "3.1.0", "paths": paths}).to_string();
    assert!(text.len() > 8 * 1024 * 1024);
    let file = Written::new("huge", &text);
    let base_url = Some("https://a.test".to_owned());
    let config = RestConfig { base_url, ..RestConfig::new(file.document()) };
    assert_eq!(loaded(config.clone(), &parts()).await.unwrap().len(), 20);

    let limits = Limits { upstream_document_bytes_max: 1_000, ..Limits::default() };
    let small = RemoteParts { limits: Arc::new(limits), ..parts() };
    let (address, _peer) = peer(vec![answer("200 OK", "", &filler)]).await;
    let remote = Document::Url(format!("http://{address}/openapi.json"));
    for config in [config, RestConfig::new(remote)] {
        let fault = loaded(config, &small).await.err().unwrap();
        assert!(fault.message.contains("`upstream_document_bytes_max` = 1000"), "{fault}");
        let hint = "raise `upstream_document_bytes_max` in `[limits]` of `waypost.toml`";
        assert_eq!(fault.hint.as_deref(), Some(hint));
    }
}
