//! Mistakes that the reader reports for tables that do not fit their types.

use super::*;
use crate::layer::Layer;
use kernel::definition::plan::mistake::Mistake;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Root {
    shop: Kept<Shop>,
    rooms: Kept<Each<Room>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Shop {
    name: Option<Text>,
    doors: Vec<u16>,
    days: Days,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Days {
    #[default]
    All,
    Working,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Room {
    key: Option<Text>,
    lamp: IfTable<Lamp>,
    size: Option<Number>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Lamp {
    #[serde(alias = "color")]
    colour: String,
}

fn root(owner: Owner, text: &str) -> (Root, Vec<String>) {
    let tree = SettingsTree::of_toml(&Layer::file("a.toml", text)).unwrap();
    let mut mistakes = Vec::new();
    let root = read(&tree, &[], owner, &mut mistakes);
    (root, mistakes.iter().map(Mistake::to_string).collect())
}

fn wrong(text: &str) -> Vec<String> {
    root(Owner::Ours, text).1
}

#[test]
fn values_know_their_positions() {
    let text = "[shop]\nname = \"a\"\ndoors = [1, 2]\ndays = \"working\"\n[rooms.\"b c\"]\n\
                lamp = { color = \"red\" }\nkey = \"ü\"\nsize = 1.50\n[rooms.d]\nlamp = true\n";
    let (root, mistakes) = root(Owner::Ours, text);
    assert_eq!(mistakes, Vec::<String>::new());
    let Shop { name, doors, days } = root.shop.0;
    assert_eq!(
        (name.unwrap().place.to_string(), doors, days),
        ("a.toml:2".into(), vec![1, 2], Days::Working)
    );
    let rooms = root.rooms.0.0;
    assert_eq!(rooms.iter().map(|(name, _)| name.text.as_str()).collect::<Vec<_>>(), ["b c", "d"]);
    let (name, room) = &rooms[0];
    assert_eq!((name.place.line, name.place.column), (5, 8));
    let keys: Vec<&str> = room.keys.iter().map(|key| key.text.as_str()).collect();
    assert_eq!(keys, ["lamp", "key", "size"]);
    assert_eq!(room.value.lamp.0, Some(Lamp { colour: "red".to_owned() }));
    assert_eq!(room.value.key.as_ref().map(|key| key.text.as_str()), Some("ü"));
    assert_eq!(room.value.size.as_ref().unwrap().0, "1.5");
    assert_eq!(rooms[1].1.value.lamp.0, None);
}

#[test]
fn every_unknown_key_is_reported_and_one_mistake_per_table() {
    assert_eq!(
        wrong(
            "[shop]\nnam = 1\nx = 2\nname = 3\ndays = \"al\"\n[rooms.a]\nkey = []\n\
             [rooms.\"b c\"]\nlamp = { colr = 1, colour = 2 }\n[rooms]\ne = 1\n"
        ),
        [
            "a.toml:2:1: error: unknown key `nam` in `[shop]`; hint: did you mean `name`?",
            "a.toml:3:1: error: unknown key `x` in `[shop]`; hint: known here: name, doors, days",
            "a.toml:4:8: error: `name` must be a text, and is a number",
            "a.toml:7:7: error: `key` must be a text, and is a list",
            "a.toml:9:10: error: unknown key `colr` in `[rooms.\"b c\".lamp]`; \
             hint: did you mean `color`?",
            "a.toml:9:29: error: `colour` must be a text, and is a number",
            "a.toml:11:5: error: `e` must be a table, and is a number",
        ]
    );
    assert_eq!(
        wrong("rooms = 1\nshop = [1]\nshp = 1\n")[0],
        "a.toml:3:1: error: unknown key `shp`; hint: did you mean `shop`?"
    );
    assert_eq!(
        wrong("rooms = 1\nshop = [1]\n"),
        [
            "a.toml:1:9: error: `rooms` must be a table, and is a number",
            "a.toml:2:8: error: `shop` must be a table, and is a list",
        ]
    );
}

#[test]
fn a_wrong_value_is_refused_in_the_words_of_settings() {
    let told = |line: &str| wrong(&format!("[shop]\n{line}\n")).join("\n");
    for (line, expected) in [
        (
            "doors = [1, 70000]",
            "a.toml:2:13: error: `doors` must be a whole number from 0 to 65535, and is 70000",
        ),
        (
            "doors = [-1]",
            "a.toml:2:10: error: `doors` must be a whole number from 0 to 65535, and is a \
             number below 0 or far too large",
        ),
        (
            "doors = 1.5",
            "a.toml:2:9: error: `doors` must be a list, and is a number with a fraction",
        ),
        (
            "days = \"workin\"",
            "a.toml:2:8: error: `days` cannot be `workin`; hint: did you mean `working`?",
        ),
        (
            "days = \"never\"",
            "a.toml:2:8: error: `days` cannot be `never`; hint: it is `all` or `working`",
        ),
        ("days = 1979-05-27", "a.toml:2:8: error: `days` must be a text, and is a date"),
    ] {
        assert_eq!(told(line), expected);
    }
}

#[test]
fn a_clients_file_may_have_keys_of_others() {
    let owner = Owner::Client(&[("shade", "leave it out")]);
    let (_, mistakes) = root(owner, "x = 1\n[rooms.a]\nshade = 1\nother = 2\nkeys = \"k\"\n");
    assert_eq!(
        mistakes,
        [
            "a.toml:3:1: warning: `shade` of `rooms.a` is not followed here; hint: leave it out",
            "a.toml:5:1: error: unknown key `keys` in `rooms.a`; hint: did you mean `key`?",
        ]
    );
}
