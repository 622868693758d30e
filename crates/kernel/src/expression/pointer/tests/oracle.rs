//! Queries held against RFC 9535: texts that must not be read, and what `serde_json_path` selects,
//! over a table of queries and over random ones.

use crate::expression::budget::Budget;
use crate::expression::pointer::{parse, query};
use serde_json::{Value, json};
use serde_json_path::JsonPath;

fn ours(text: &str, document: &Value) -> Result<Value, String> {
    let parsed = parse::parse(text)?;
    query::select(&parsed, document, &Budget::new(10_000_000)).map(Value::Array)
}

/// What the library selects; nothing where it does not read the query.
fn theirs(text: &str, document: &Value) -> Option<Value> {
    let path = JsonPath::parse(text).ok()?;
    Some(Value::Array(path.query(document).all().into_iter().cloned().collect()))
}

fn documents() -> Vec<Value> {
    vec![
        json!({"store": {
            "book": [
                {"category": "reference", "author": "Rees", "title": "Sayings", "price": 8.95},
                {"category": "fiction", "author": "Waugh", "title": "Sword", "price": 12.99},
                {"category": "fiction", "author": "Melville", "title": "Moby Dick",
                 "isbn": "0-553-21311-3", "price": 8.99},
                {"category": "fiction", "author": "Tolkien", "title": "The Ring",
                 "isbn": "0-395-19395-8", "price": 22.99},
            ],
            "bicycle": {"color": "red", "price": 399},
        }}),
        json!({
            "a": [3, 5, 1, 2, 4, 6, {"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
            "o": {"p": 1, "q": 2, "r": 3, "s": 5, "t": {"u": 6}},
            "e": "f", "k.k": {"j j": {"x": 1}}, "☺": "smile", "": "empty", "'": "quote",
            "\"": "double", "\\": "slash", "\n": "line", "null": null, "yes": true,
            "n": [null, true, false, 0, -0.5, 1000.0, "", [], {}, "é", "ab"],
        }),
        json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        json!([{"a": 1, "b": 1}, {"a": "x", "b": "y"}, {"a": [1, 2]}, {"b": {"a": 3}}, [1, [2]]]),
        json!({"lines": ["ab", "a\nb", "a\rb", "AB", "1974-05-11", "ümlaut", "", "a.b", 7],
            "rows": [{"t": "abc", "p": "a.c"}, {"t": "abc", "p": "("}, {"t": "abc", "p": "b"}]}),
        json!([[[[1], 2], 3], 4]),
        json!([[1, 2], [1, 2, 3], [], "ab", {"a": 1}, null]),
        json!("text"),
        json!({}),
        Value::Null,
    ]
}

const QUERIES: &[&str] = &[
    "$",
    "$.a",
    "$.a.b",
    "$['a']",
    "$[\"a\"]",
    "$['a']['b']",
    "$.o.t.u",
    "$['o']['t']['u']",
    "$['k.k']['j j']",
    "$['k.k'].*",
    "$.☺",
    "$['☺']",
    "$['']",
    "$[\"'\"]",
    "$['\\'']",
    "$['\"']",
    "$[\"\\\"\"]",
    "$['\\\\']",
    "$['\\n']",
    "$[\"\\u000A\"]",
    "$['\\u263A']",
    "$['\\/']",
    "$.null",
    "$.yes",
    "$.missing",
    "$.*",
    "$[*]",
    "$.*.*",
    "$[*][*]",
    "$.a[*]",
    "$.a.*",
    "$.o[*]",
    "$.o[*, *]",
    "$['o','a']",
    "$['o', 'a', 'o']",
    "$[0]",
    "$[1]",
    "$[-1]",
    "$[-10]",
    "$[-11]",
    "$[10]",
    "$[0,1]",
    "$[0, 0]",
    "$[ 0 , 'a' ]",
    "$.a[0]",
    "$.a[-1]",
    "$.a[6].b",
    "$[0][0][0]",
    "$[1:3]",
    "$[1:]",
    "$[:3]",
    "$[:]",
    "$[::]",
    "$[5:]",
    "$[1:5:2]",
    "$[5:1:-2]",
    "$[::-1]",
    "$[::2]",
    "$[::-2]",
    "$[:2:-1]",
    "$[2::-1]",
    "$[-2:]",
    "$[:-2]",
    "$[-3:-1]",
    "$[3:1]",
    "$[0:100]",
    "$[-100:100]",
    "$[100:-100:-1]",
    "$[::0]",
    "$[1:3,0]",
    "$[ 1 : 3 : 1 ]",
    "$[7:3]",
    "$[9007199254740991]",
    "$[:9007199254740991:9007199254740991]",
    "$[-9007199254740991::]",
    "$..a",
    "$..*",
    "$..[*]",
    "$..[0]",
    "$..[0,1]",
    "$..['a','b']",
    "$..[::-1]",
    "$..b..a",
    "$..o..[*, *]",
    "$..*..*",
    "$.store..price",
    "$..book[2]",
    "$..book[-1]",
    "$..book[:2]",
    "$.store.book[*].author",
    "$..book[?@.isbn]",
    "$..book[?@.price < 10]",
    "$..book[?@.price<10]",
    "$..book[?@.price <= 8.99].title",
    "$..book[?@.price > 8.95 && @.category == 'fiction']",
    "$..book[?@.price >= 22.99 || @.author == \"Rees\"].author",
    "$..book[?!@.isbn].title",
    "$..book[?!(@.isbn && @.price < 9)].title",
    "$..book[?(@.price == 8.95)]",
    "$..book[?@.price == 8.95, ?@.price == 22.99].title",
    "$..[?@.price]",
    "$..[?@.color]",
    "$[?@]",
    "$[?!@]",
    "$[?@.a]",
    "$[?@.a == 1]",
    "$[?@.a == 1.0]",
    "$[?@.a == 'x']",
    "$[?@.a != 1]",
    "$[?@.a == @.b]",
    "$[?@.a != @.b]",
    "$[?@.x == @.y]",
    "$[?@.x != @.y]",
    "$[?@.a == null]",
    "$[?@ == null]",
    "$[?@ == true]",
    "$[?@ == false]",
    "$[?@ == 'ab']",
    "$[?@ == 1e3]",
    "$[?@ == -0]",
    "$[?@ == 1E0]",
    "$[?@ == -0.5]",
    "$[?@ < 3]",
    "$[?@ > 3]",
    "$[?@ >= 3]",
    "$[?@ <= 3]",
    "$[?3 > @]",
    "$[?3 <= @]",
    "$[?@ < 'b']",
    "$[?@.a < 'y']",
    "$.n[?@ == 0]",
    "$.n[?@ == null]",
    "$.n[?@ < 1]",
    "$.n[?@ <= 'é']",
    "$.n[?@ == '']",
    "$.n[?length(@) == 0]",
    "$.n[?length(@) == 1]",
    "$.n[?length(@) == 2]",
    "$.a[?@.b == 'kilo']",
    "$.a[?@ > 3.5]",
    "$.a[?@.b]",
    "$[?@.*]",
    "$[?@[*]]",
    "$[?@[?@ > 1]]",
    "$[?@[0] == 1]",
    "$[?@[1]]",
    "$.o[?@ < 3]",
    "$.o[?@ > 1 && @ < 4]",
    "$.o[?@.u || @ == 5]",
    "$.a[?@ < 2 || @.b == 'k']",
    "$[?(@.a)]",
    "$[?((@.a))]",
    "$[? ( @.a ) ]",
    "$[?!(@.a)]",
    "$[? ! ( @.a )]",
    "$[?@.a&&@.b]",
    "$[?@.a||@.b&&@.x]",
    "$[?(@.a||@.b)&&@.x]",
    "$[?@.a == 1 && @.b == 1]",
    "$[?@['a'] == 1]",
    "$[?length(@.a) == 2]",
    "$[?length(@) > 1]",
    "$[?length(@.a) == length(@.b)]",
    "$[?length(@.x) == length(@.y)]",
    "$[?length(value(@.*)) == 2]",
    "$[?count(@.*) == 2]",
    "$[?count(@..*) > 2]",
    "$[?count(@) == 1]",
    "$[?value(@..a) == 3]",
    "$[?value(@.*) == 1]",
    "$[?value(@.a) == 1]",
    "$[?2 == count(@.*)]",
    "$[?length('abc') == 3]",
    "$[?length( @.a )==1]",
    "$.lines[?match(@, 'a.b')]",
    "$.lines[?match(@, '[a-z]+')]",
    "$.lines[?search(@, 'b')]",
    "$.lines[?search(@, '^a')]",
    "$.lines[?match(@, '.*')]",
    "$.lines[?!match(@, 'a.*')]",
    "$.lines[?match(@, '1974-05-..')]",
    "$.lines[?match(@, '\\\\p{Ll}+')]",
    "$.lines[?search(@, '[')]",
    "$.lines[?match(@, 'a\\\\.b')]",
    "$.lines[?search(@, '')]",
    "$.rows[?match(@.t, @.p)]",
    "$.rows[?search(@.t, @.p)]",
    "$.rows[?search(@.x, @.p)]",
    "$.rows[?search(@.t, 'b') && @.p == 'b']",
    "$ .a",
    "$\n['a']",
    "$ [0] [0]",
    "$.a [0]",
    "$[\t'a'\r,\n'b' ]",
    "$[?@.a\n==\t1]",
];

#[test]
fn a_table_of_queries_selects_the_same_as_the_reference_library() {
    let mut compared = 0;
    for text in QUERIES {
        for document in documents() {
            let Some(expected) = theirs(text, &document) else { continue };
            assert_eq!(ours(text, &document), Ok(expected), "{text} over {document}");
            compared += 1;
        }
    }
    // The library reads at least nine of ten queries.
    assert!(compared >= QUERIES.len() * documents().len() * 9 / 10, "{compared} were compared");
}

const REFUSED: &[&str] = &[
    "",
    "a",
    "@.a",
    " $",
    "$ ",
    "$.",
    "$..",
    "$.a.",
    "$.1",
    "$.-a",
    "$.a-b",
    "$. a",
    "$.. a",
    "$.[0]",
    "$.'a'",
    "$.a b",
    "$a",
    "$..",
    "$...a",
    "$[",
    "$[]",
    "$[1",
    "$[1,]",
    "$[,1]",
    "$[1 2]",
    "$['a]",
    "$[\"a']",
    "$[a]",
    "$[01]",
    "$[-0]",
    "$[-01]",
    "$[+1]",
    "$[1.0]",
    "$[1e1]",
    "$[--1]",
    "$[-]",
    "$[9007199254740992]",
    "$[-9007199254740992]",
    "$[1:2:3:4]",
    "$[0:01]",
    "$[::-0]",
    "$['\\x']",
    "$['\\\"']",
    "$[\"\\'\"]",
    "$['\\u12']",
    "$['\\uD800']",
    "$['\\uDC00']",
    "$['\\uD800\\u0041']",
    "$['\\uD800x']",
    "$['\u{1}']",
    "$['a\nb']",
    "$[?]",
    "$[?()]",
    "$[?(@.a]",
    "$[?@.a)]",
    "$[?@.a==]",
    "$[?==1]",
    "$[?@.a=1]",
    "$[?@.a===1]",
    "$[?@.a<>1]",
    "$[?1]",
    "$[?'a']",
    "$[?true]",
    "$[?null]",
    "$[?@.a==1==1]",
    "$[?@.a==1 2]",
    "$[?!@.a==1]",
    "$[?!!@.a]",
    "$[?! !@.a]",
    "$[?@.*==1]",
    "$[?@..a==1]",
    "$[?@[0:1]==1]",
    "$[?@['a','b']==1]",
    "$[?@[?@]==1]",
    "$[?1==@.*]",
    "$[?length(@.a)]",
    "$[?!length(@.a)]",
    "$[?length(@.*)==1]",
    "$[?length()==1]",
    "$[?length(@.a,1)==1]",
    "$[?length(@.a==1)==1]",
    "$[?length(match(@,'a'))==1]",
    "$[?count(1)==1]",
    "$[?count('a')==1]",
    "$[?count()==1]",
    "$[?count(length(@))==1]",
    "$[?value(1)==1]",
    "$[?match(@.a,'x')==true]",
    "$[?match(@.a)]",
    "$[?match(@.*,'x')]",
    "$[?match(@.a,'x','y')]",
    "$[?nope(@.a)]",
    "$[?length (@.a)==1]",
    "$[?Length(@.a)==1]",
    "$[?@.a &&]",
    "$[?|| @.a]",
    "$[?@.a & @.b]",
    "$[?@.a and @.b]",
    "$[?@.a == True]",
    "$[?@.a == nul]",
    "$[?@.a == {}]",
    "$[?@.a == []]",
    "$[?@.a == 01]",
    "$[?@.a == 1.]",
    "$[?@.a == .5]",
    "$[?@.a == +1]",
    "$[?@.a == 1e]",
    "$[?@.a == 1e+]",
    "$[?@.a == 0x1]",
    "$[?@.a == 1e999]",
    "$[?@.a == (1)]",
    "$[?.a]",
    "$[?a]",
    "$[?@.a == $.b]",
    "$[?$.a]",
    "$[?@.a",
    "$[?@.a]]",
    "$[(@.a)]",
    "$[?@a]",
];

#[test]
fn what_rfc_9535_does_not_define_is_not_read() {
    for text in REFUSED {
        let came = ours(text, &json!({}));
        assert!(came.is_err(), "{text}: {came:?}");
    }
}

/// Here the library departs from the RFC, and we do not.
#[test]
fn where_the_reference_library_differs_the_rfc_is_followed() {
    for (text, document, expected) in [
        ("$[?@[-1] == 2]", json!([[1, 2], [2, 1]]), json!([[1, 2]])),
        ("$[?@.x <= @.y]", json!([{}]), json!([{}])),
        ("$[?@.x >= @.y]", json!([{}]), json!([{}])),
        ("$[?@ > false]", json!([true, false]), json!([])),
        ("$[?@ >= true]", json!([true, false]), json!([true])),
        ("$[?@ <= null]", json!([null, 1]), json!([null])),
        ("$[?@.a > @.b]", json!([{"a": [2], "b": [1]}]), json!([])),
        ("$[?@.a >= @.b]", json!([{"a": [2], "b": [2]}]), json!([{"a": [2], "b": [2]}])),
        ("$[?@.a == @.b]", json!([{"a": [1], "b": [1.0]}]), json!([{"a": [1], "b": [1.0]}])),
        ("$[?@ == 9007199254740993]", json!([9007199254740992_i64]), json!([])),
        ("$ ..a", json!({"a": 1}), json!([1])),
        ("$['\\ud83d\\ude00']", json!({"😀": 1}), json!([1])),
        ("$['\\uD83D\\uDE00']", json!({"😀": 1}), json!([1])),
    ] {
        assert_eq!(ours(text, &document), Ok(expected), "{text} over {document}");
    }
}

/// The numbers of a linear congruential generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % sides
    }

    fn pick<'p>(&mut self, from: &[&'p str]) -> &'p str {
        from[self.below(from.len())]
    }

    fn document(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 | 3 => json!(self.below(4)),
            4 => json!(self.pick(&["", "a", "ab", "b", "é"])),
            5 | 6 => (0..self.below(4)).map(|_| self.document(depth - 1)).collect(),
            _ => {
                let mut fields = serde_json::Map::new();
                for _ in 0..self.below(4) {
                    let name = self.pick(&["a", "b", "c"]).to_owned();
                    fields.insert(name, self.document(depth - 1));
                }
                Value::Object(fields)
            }
        }
    }

    fn query(&mut self, start: &str, depth: usize) -> String {
        let parts = (0..1 + self.below(3)).map(|_| self.part(depth)).collect::<String>();
        format!("{start}{parts}")
    }

    fn part(&mut self, depth: usize) -> String {
        let simple = [
            ".a", ".b", "['c']", "[0]", "[1]", "[-1]", ".*", "[*]", "..a", "..*", "..[0]", "[0:2]",
            "[1:]", "[::-1]", "[-2::2]", "['a','b']", "[0,*]", " ['a']", "[ 1 , 0 ]",
        ];
        match self.below(3) {
            0 if depth > 0 => format!("[?{}]", self.test(depth - 1)),
            _ => self.pick(&simple).to_owned(),
        }
    }

    fn test(&mut self, depth: usize) -> String {
        match self.below(9) {
            0 => format!("({})", self.test(depth)),
            1 => format!("!({})", self.test(depth)),
            2 => format!("{} && {}", self.test(depth), self.test(depth)),
            3 => format!("{}||{}", self.test(depth), self.test(depth)),
            4 => self.query("@", depth),
            5 => format!("!{}", self.query("@", depth)),
            6 => {
                let function = self.pick(&["match", "search"]);
                let path = self.singular();
                format!("{function}({path}, '{}')", self.pick(&["a", "a.*", "[ab]+", "", "("]))
            }
            7 => {
                let sign = self.pick(&["==", "!=", " == "]);
                format!("{}{sign}{}", self.operand(depth), self.operand(depth))
            }
            _ => {
                // The library orders booleans, arrays and objects, so one side is neither.
                let sign = self.pick(&["<", "<=", ">", ">=", " >= "]);
                let literal = self.pick(&["0", "1", "2.5", "-1", "'a'", "\"b\""]);
                format!("{}{sign}{literal}", self.operand(depth))
            }
        }
    }

    /// Without negative indexes, which the library does not follow here.
    fn singular(&mut self) -> String {
        self.pick(&["@", "@.a", "@.b", "@['c']", "@[0]", "@.a.b", "@[1].a", "@.a[0]"]).to_owned()
    }

    fn operand(&mut self, depth: usize) -> String {
        let literals = ["0", "1", "1.0", "'a'", "\"ab\"", "''", "true", "false", "null"];
        match self.below(6) {
            0 | 1 => self.pick(&literals).to_owned(),
            2 | 3 => self.singular(),
            4 => format!("length({})", self.singular()),
            _ => {
                // The last part keeps the library from reading it as a singular query.
                let function = self.pick(&["count", "value"]);
                let query = self.query("@", depth);
                format!("{function}({query}{})", self.pick(&[".*", "[0:1]", "..a"]))
            }
        }
    }
}

#[test]
fn random_queries_select_the_same_as_the_reference_library() {
    let mut dice = Dice(20_260_101);
    let mut compared = 0;
    for _ in 0..3_000 {
        let text = dice.query("$", 2);
        let document = dice.document(4);
        let Some(expected) = theirs(&text, &document) else { continue };
        assert_eq!(ours(&text, &document), Ok(expected), "{text} over {document}");
        compared += 1;
    }
    assert!(compared >= 2_000, "{compared} were compared");
}
