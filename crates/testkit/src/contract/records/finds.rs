//! Reads: which rows, in which order, in which pages, and what of them.

use super::scene::{Must, RecordsScene, names};
use futures::executor::block_on;
use query::evaluate::{Row, takes};
use query::records::error::RecordError;
use query::records::requests::{Count, Cut, Find, Page};
use serde_json::{Value, json};

/// Each operator over each kind, and what is missing.
const QUERIES: &[&str] = &[
    "",
    "refName:THREE",
    "refName:three~cs",
    "refName:t*",
    "refName:?our",
    "code:a-1",
    "code:A-1~cs",
    "code:!A-1",
    "code:\"b 100%\"",
    "code:\"b 1\"*",
    "code:^[A-1,\"B 100%\"]",
    "code:!^[A-1]",
    "code:~",
    "code:null",
    "code:!null",
    "size:10",
    "size:#10",
    "size:#9007199254740993",
    "size:>##9007199254740992",
    "size:<#11",
    "size:>=#10 && size:<=#10",
    "rent:19.90",
    "rent:>#19 || rent:<#0",
    "rent:##20",
    "open:true",
    "open:!true",
    "open:false || open:null",
    "opened:2024-01-31",
    "opened:<2024-01-01",
    "checked:2024-01-31",
    "checked:>2024-01-31T09:00:00Z",
    "checked:<=2024-01-31T10:00:00+01:00",
    "tags:cold",
    "tags:^[OLD]",
    "slots.name:s1",
    "slots[1].name:s2",
    "slots:{name:s1 && load:>#1}",
    "slots:{name:s2 && load:<#2}",
    "slots:~",
    "slots.next.entityRefName:one",
    "town.entityRefName:ölfus",
    "extra.a:1",
    "extra.a.b:X",
    "extra:text",
    "text(cold nothing)",
    "text(ölf)",
    "!!(kind:side && rent:##19.9)",
    "dataDomain.tenantId:north && version:#1",
    "auditInfo.creationTs:2023-11-14",
    "realm:r",
    "hasEdge(a,b)",
];

pub fn rows_are_those_that_the_evaluator_takes(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let all = ann.found("Depot", "");
    assert_eq!(all.len(), 4);
    for query in QUERIES {
        let checked = ann.checked("Depot", query);
        let expected: Vec<&Value> =
            all.iter().filter(|record| takes(&checked, Row { realm: "r", record })).collect();
        let found = ann.page("Depot", query, "", Page { limit: 9, ..Page::default() }).must();
        assert_eq!(found.rows.iter().collect::<Vec<_>>(), expected, "{query}");
        assert_eq!(found.total, Some(expected.len() as u64), "{query}");
        let counted = ann.counted("Depot", query, &[], &[]).must();
        assert_eq!(counted.count, expected.len() as u64, "{query}");
    }
}

pub fn rows_are_ordered_by_the_fields_and_then_by_id(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    for (sort, order) in [
        ("", ["one", "two", "Three", "four"]),
        ("-id", ["four", "Three", "two", "one"]),
        ("refName", ["four", "one", "Three", "two"]),
        ("size", ["four", "one", "Three", "two"]),
        ("-size,-rent", ["two", "Three", "one", "four"]),
        ("rent,-refName", ["two", "one", "four", "Three"]),
        ("-checked", ["two", "one", "Three", "four"]),
        ("open", ["Three", "four", "two", "one"]),
        ("slots.name", ["two", "Three", "one", "four"]),
        ("-slots.load", ["one", "two", "Three", "four"]),
        ("town.entityRefName,code", ["one", "Three", "two", "four"]),
    ] {
        assert_eq!(ann.names("Depot", "", sort), order, "{sort}");
    }
}

pub fn pages_follow_each_other_without_gap_or_overlap(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    for sort in ["", "-id", "rent", "-rent", "size,-code", "-slots.name", "opened", "extra"] {
        let all = ann.names("Depot", "", sort);
        for limit in 1..=5 {
            let pages = ann.paged("Depot", sort, limit);
            assert!(pages.iter().all(|page| page.len() <= limit), "{sort}: {pages:?}");
            assert_eq!(pages.concat(), all, "{sort}");
            assert_eq!(pages.len(), all.len().div_ceil(limit), "{sort}");
        }
    }
    let page = |skip, limit| {
        let page = Page { skip, limit, after: None };
        let found = ann.page("Depot", "rent:~", "refName", page).must();
        (names(&found.rows), found.total, found.next.is_some())
    };
    let two = vec!["one".to_owned(), "Three".to_owned()];
    assert_eq!(page(1, 2), (two, Some(4), true));
    assert_eq!(page(3, 2), (vec!["two".to_owned()], Some(4), false));
    assert_eq!(page(4, 2), (Vec::new(), Some(4), false));
}

pub fn a_cursor_holds_though_its_row_is_gone(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let page = Page { limit: 2, ..Page::default() };
    let first = ann.page("Depot", "", "-refName", page).must();
    assert_eq!(names(&first.rows), ["two", "Three"]);
    ann.deleted("Depot", first.rows[1]["id"].as_str().must()).must();
    let page = Page { after: first.next, skip: 0, limit: 9 };
    let second = ann.page("Depot", "", "-refName", page).must();
    assert_eq!(names(&second.rows), ["one", "four"]);
    assert_eq!((second.total, second.next), (Some(3), None));
}

pub fn a_page_ends_before_it_has_too_many_bytes(scene: RecordsScene) {
    let ann = scene.ann();
    for name in ["one", "two", "six"] {
        ann.put("Town", json!({"refName": name, "name": "x".repeat(3_000)}));
    }
    let page = Page { limit: 3, ..Page::default() };
    let first = ann.page("Town", "", "", page).must();
    assert_eq!((names(&first.rows).len(), first.cut), (2, Some(Cut::Bytes)));
    assert_eq!(first.total, Some(3));
    let page = Page { after: first.next, skip: 0, limit: 3 };
    let second = ann.page("Town", "", "", page).must();
    assert_eq!((names(&second.rows), second.cut), (vec!["six".to_owned()], None));
    let page = Page { limit: 3, ..Page::default() };
    let small = ann.page("Town", "fields:[+refName]", "", page).must();
    assert_eq!((small.rows.len(), small.cut), (3, None), "what is shown counts");
}

pub fn what_is_embedded_is_counted(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    ann.put("Depot", json!({"refName": "five", "town": "rome"}));
    let page = Page { limit: 9, ..Page::default() };
    let first = ann.page("Depot", "expand(town)", "", page).must();
    assert_eq!((first.rows.len(), first.cut), (4, Some(Cut::Embedded)));
    assert_eq!(first.rows[0]["town"]["mayor"], "Ida");
    let page = Page { after: first.next, skip: 0, limit: 9 };
    let second = ann.page("Depot", "expand(town)", "", page).must();
    assert_eq!((names(&second.rows), second.cut), (vec!["five".to_owned()], None));
    let slots = vec![json!({"next": "one"}); 5];
    ann.put("Depot", json!({"refName": "wide", "town": "rome", "slots": slots}));
    let page = Page { limit: 9, ..Page::default() };
    let refused = ann.page("Depot", "refName:wide && expand(slots.next)", "", page);
    assert_eq!(refused, Err(RecordError::TooManyEmbedded { max: 4 }));
}

pub fn fields_are_chosen(scene: RecordsScene) {
    let scene = scene.furnished();
    let ann = scene.ann();
    let id = ann.id_of("Depot", "one");
    let query = "refName:one && expand(town, fields:[+name]) && fields:[+code,+town]";
    let town = json!({"id": ann.id_of("Town", "oslo"), "name": "oslo"});
    assert_eq!(ann.found("Depot", query), [json!({"id": id, "code": "A-1", "town": town})]);
    let query = "refName:one && expand(town, name:rome) && fields:[+town]";
    assert_eq!(ann.found("Depot", query), [json!({"id": id, "town": null})]);
    let found = ann.found("Depot", "refName:one && fields:[-slots,-dataDomain.ownerId]");
    assert_eq!(found[0].get("slots"), None);
    assert_eq!(found[0]["dataDomain"].get("ownerId"), None);
    assert_eq!(found[0]["dataDomain"]["tenantId"], "north");
}

pub fn a_type_that_is_not_declared_is_refused(scene: RecordsScene) {
    let ann = scene.ann();
    let find = Find {
        record_type: "shop.Ship".to_owned(),
        query: ann.checked("Town", ""),
        sort: Vec::new(),
        page: Page::default(),
        total: false,
    };
    let unresolved = RecordError::UnresolvedCollection("shop.Ship".to_owned());
    let found = block_on(scene.store.find(ann.access(), find));
    assert_eq!(found, Err(unresolved.clone()));
    let count = Count { record_type: "shop.Ship".to_owned(), filter: None, grouping: None };
    assert_eq!(block_on(scene.store.count(ann.access(), count)), Err(unresolved));
}
