//! Tests of templates: what they can do, and that no text can make them do too much.

use super::meter::{RENDERED_BYTES_MAX, WORK_MAX};
use super::simple::Simple;
use super::*;
use serde_json::json;

fn root() -> Map<String, Value> {
    let Value::Object(root) = json!({
        "context": {
            "sum": 3,
            "name": "Ann Lee",
            "tags": ["b", "a", "b"],
            "rows": [
                {"id": 1, "kind": "x", "cost": 1.5},
                {"id": 2, "kind": "y", "cost": 2},
                {"id": 3, "kind": "x", "cost": 3},
            ],
            "by": {"b": 2, "a": 1},
            "text": "one\ntwo",
            "tree": [1, [2, [3]]],
        },
        "promptInput": {"who": "Ann"},
    }) else {
        unreachable!()
    };
    root
}

fn render(source: &str) -> Result<String, String> {
    Template::parse(source)?.render(root())
}

/// A root with one large text and a list of 2,000 numbers.
fn large(bytes: usize) -> Map<String, Value> {
    let numbers: Vec<u32> = (0..2_000).collect();
    Map::from_iter([("context".to_owned(), json!({"big": "x".repeat(bytes), "numbers": numbers}))])
}

fn work() -> String {
    format!("it handles more than {WORK_MAX} bytes")
}

fn length() -> String {
    format!("the text becomes longer than {RENDERED_BYTES_MAX} bytes")
}

/// The error of a text must contain these words, whichever way it goes in.
fn refused(source: &str, words: &str) {
    let short: String = source.chars().take(60).collect();
    let long_line = source.len() <= 256 * 1024 && source.split('\n').any(|it| it.len() > 65_000);
    let words = if long_line { "has at most 65000 bytes" } else { words };
    let found = [
        Template::parse(source).map(drop),
        names(source).map(drop),
        fill(source, Map::new()).map(drop),
    ];
    for error in found.map(|found| found.expect_err(&short)) {
        assert!(error.contains(words), "{short}: {error}");
    }
}

#[test]
fn templates_are_rendered_and_plain_texts_stay() {
    assert_eq!(render("plain {text}").unwrap(), "plain {text}");
    assert_eq!(render("sum: {{ context.sum }}").unwrap(), "sum: 3");
    assert_eq!(render("hi {{ promptInput.who }} <b>").unwrap(), "hi Ann <b>");
}

#[test]
fn an_undefined_name_is_a_fault() {
    assert!(render("{{ context.missing }}").unwrap_err().contains("undefined"));
    assert!(render("{{ context.missing.name }}").unwrap_err().contains("undefined"));
    assert!(render("{{ context.missing == 1 }}").unwrap_err().contains("undefined"));
    assert!(render("{{ contxt.sum }}").unwrap_err().contains("`contxt` is not known"));
    assert!(render("{{ context.sum").is_err());
}

#[test]
fn a_template_needs_only_the_names_that_it_reads() {
    let template = Template::parse("{{ context.a.b }} {{ context['c'] }}").unwrap();
    let needs = template.needs().unwrap();
    assert!(needs.context_keys.contains("a"));
    assert!(needs.context_keys.contains("c") || needs.whole_context);
}

/// Texts as plans have them, and what they come to.
const ORDINARY: &[(&str, &str)] = &[
    ("{{ -context.sum }} {{ context.rows[0].id }}{{ context['rows'][-1]['id'] }}", "-3 13"),
    (
        "{{ 1 < context.sum <= 3 }} {{ 'Lee' in context.name }} {{ 'z' not in context.tags }}",
        "True True True",
    ),
    ("{{ 'yes' if context.sum == 3 else 'no' }} {{ not context.tags }}", "yes False"),
    ("{% if context.sum == 1 %}1{% elif context.sum == 3 %}3{% else %}0{% endif %}", "3"),
    (
        "{% for r in context.rows %}{{loop.index}}/{{loop.length}}{{ r.kind }} {% endfor %}",
        "1/3x 2/3y 3/3x ",
    ),
    ("{% for r in context.rows if r.kind == 'x' %}{{ r.id }}{% else %}none{% endfor %}", "13"),
    ("{% for k in context.by %}{{ k }}={{ context.by[k] }} {% endfor %}", "a=1 b=2 "),
    ("{% raw %}{{ ---- }}{% endraw %}{# {{ #}", "{{ ---- }}"),
    ("{{ context.name|upper }} {{ ' Ann '|lower|trim }}", "ANN LEE ann"),
    ("{{ context.missing|default('d') }} {{ context.missing is defined }}", "d False"),
    ("{{ context.tags|length }} {{ context.tags|first }}{{ context.tags|last }}", "3 bb"),
    ("{{ context.tags|join(', ') }} {{ context.rows|join('-', attribute='id') }}", "b, a, b 1-2-3"),
    (
        "{{ context.by }} {{ context.tags }} {{ context.tree }}",
        "{'a': 1, 'b': 2} ['b', 'a', 'b'] [1, [2, [3]]]",
    ),
    (
        "{{ context.sum is number }} {{ context.name is string }} {{ none is none }}",
        "True True True",
    ),
    ("{{ 1 in [1, 2] and context.missing is undefined }}", "True"),
];

#[test]
fn ordinary_texts_work() {
    for (source, expected) in ORDINARY {
        assert_eq!(render(source).as_deref(), Ok(*expected), "{source}");
    }
}

#[test]
fn an_unknown_filter_test_or_block_is_refused_with_a_list_of_valid_ones() {
    let filters = "there is no filter `shout`; use one of `default`, `first`, `join`, `last`, \
                   `length`, `lower`, `trim`, `upper`";
    refused("{{ context.name|shout }}", filters);
    refused("{% if 1 %}{{ context.name|upper|shout('x') }}{% endif %}", filters);
    let tests = "there is no test `odd`; use one of `defined`, `none`, `number`, `string`, \
                 `undefined`";
    refused("{{ 1 if context.sum is not odd }}", tests);
    let blocks = "there is no block `set`; use one of `if`, `elif`, `else`, `endif`, `for`, \
                  `endfor`";
    refused("{% set a = 1 %}{{ a }}", blocks);
    for block in ["with a = 1", "filter upper", "macro m()", "include 'x'", "autoescape true"] {
        refused(&format!("{{% {block} %}}"), "there is no block `");
    }
}

#[test]
fn a_template_cannot_calculate_construct_values_or_call() {
    let signs = [
        "context.sum + 1", "context.sum - 1", "2 * context.sum", "1 / 2", "1 // 2", "1 % 2",
        "2 ** 8", "'a' ~ 'b'", "context.tags[1:]", "context.name[::-1]", "{'a': 1}", "{'a': 1}.a",
    ];
    for sign in signs {
        refused(&format!("{{{{ {sign} }}}}"), "it cannot calculate");
    }
    // The compiler would make this one while the text is loaded, where nothing is metered.
    refused("{{ 'x' * 4000000000 }}", "it cannot calculate");
    for list in ["[context.sum]", "[[1, context]]", "(context, 1)"] {
        refused(&format!("{{{{ {list} }}}}"), "a text cannot make lists of values");
    }
    for call in ["range(9)", "dict(a)", "context.name.upper()", "context.f(1)(2)", "''[:range(9)]"]
    {
        refused(&format!("{{{{ {call} }}}}"), "cannot");
    }
    for looped in ["loop([x])", "loop(x)", "loop.cycle()", "loop.changed(x)"] {
        let text = format!("{{% for x in [1] recursive %}}{{{{ {looped} }}}}{{% endfor %}}");
        refused(&text, "a text cannot");
    }
}

#[test]
fn a_pinned_template_that_is_refused_now_fails_when_rendered() {
    let source = "{% set a = 1 %}{{ a }}";
    let why = Template::parse(source).unwrap_err();
    let template = Template::refused(source, why.clone());
    assert_eq!((template.source(), template.needs()), (source, None));
    assert_eq!(template.render(root()), Err(why));
}

#[test]
fn chains_of_operators_have_a_limit() {
    for length in [6_800, 1_000_000] {
        let chains = [
            format!("{{{{ {}1 }}}}", "-".repeat(length)),
            format!("{{{{ {}1 }}}}", "not ".repeat(length)),
            format!("{{{{ {}1 }}}}", "not - ".repeat(length)),
            // Without an end: the parser would come as far as this too.
            format!("{{{{ {}", "not ".repeat(length)),
            format!("{{% if {}1 %}}{{% endif %}}", "- ".repeat(length)),
            format!("{{{{ x{} }}}}", " - x".repeat(length)),
            format!("{{{{ x{} }}}}", ".x".repeat(length)),
            format!("{{{{ x{} }}}}", "[0]".repeat(length)),
            format!("{{{{ x{} }}}}", "|trim".repeat(length)),
            format!("{{{{ x{} }}}}", " if x else x".repeat(length)),
            format!("{{{{ x{} }}}}", " is defined".repeat(length)),
            format!("{{{{ x{} }}}}", " and x or x".repeat(length)),
            format!("{{{{ x{} }}}}", "()".repeat(length)),
        ];
        for chain in chains {
            let long = chain.len() > 256 * 1024;
            refused(&chain, if long { "has at most 262144 bytes" } else { "256 levels deep" });
        }
    }
}

#[test]
fn brackets_and_blocks_have_a_limit() {
    for length in [100, 6_800] {
        for (open, close) in [("(", ")"), ("[", "]"), ("x[", "]"), ("x(", ")")] {
            let nested = format!("{{{{ {}1{} }}}}", open.repeat(length), close.repeat(length));
            refused(&nested, "64 brackets");
            refused(&format!("{{{{ {}", open.repeat(length)), "64 brackets");
        }
    }
    let length = 6_800;
    for (open, close) in [("{% if 1 %}", "{% endif %}"), ("{% for a in [] %}", "{% endfor %}")] {
        refused(&format!("{}{}", open.repeat(length), close.repeat(length)), "128 blocks");
    }
    refused(&format!("{{% if 1 %}}{}", "{% elif 1 %}".repeat(length)), "128 blocks");
    // Groups with chains in them are as deep as both together.
    let group = format!("{}(", "not ".repeat(200));
    refused(&format!("{{{{ {}", group.repeat(60)), "256 levels deep");
    let left = format!("{{{{ ({}){} }}}}", "x and ".repeat(200) + "x", " and x".repeat(200));
    refused(&left, "256 levels deep");
}

#[test]
fn templates_within_the_limits_fit_the_stack() {
    let table = [
        (format!("{{{{ {}1 }}}}", "not ".repeat(250)), "True".to_owned()),
        (format!("{{{{ {}1 }}}}", "-".repeat(250)), "1".to_owned()),
        (format!("{{{{ 1{} }}}}", " and context.sum".repeat(250)), "3".to_owned()),
        (format!("{{{{ context.name{} }}}}", "|trim".repeat(250)), "Ann Lee".to_owned()),
        (format!("{{{{ {}2 }}}}", "1 if context.sum == 1 else ".repeat(80)), "2".to_owned()),
        (format!("{{{{ {}1{} }}}}", "(".repeat(60), ")".repeat(60)), "1".to_owned()),
        (format!("{}x{}", "{% if 1 %}".repeat(120), "{% endif %}".repeat(120)), "x".to_owned()),
        (format!("{{% if 0 %}}{}x{{% endif %}}", "{% elif 1 %}".repeat(120)), String::new()),
    ];
    for (source, expected) in table {
        assert_eq!(render(&source), Ok(expected), "{source}");
    }
}

#[test]
fn siblings_do_not_count_as_depth() {
    let many = "{{ context.sum }}{% if context.sum %}{% endif %}".repeat(500);
    assert_eq!(render(&many).unwrap(), "3".repeat(500));
    let long = format!("{{{{ context.sum }}}}{}", "x\n".repeat(100_000));
    assert_eq!(render(&long).unwrap().len(), 200_000);
    let plain = "x".repeat(2_000_000);
    assert_eq!(fill(&plain, Map::new()).unwrap(), plain);
}

#[test]
fn a_foreign_placeholder_is_left_unchanged() {
    let text = fill_known("{{ context.sum }} of {{ tenantName }}, {{tenantName}}", root());
    assert_eq!(text.unwrap(), "3 of {{tenantName}}, {{tenantName}}");
    assert!(fill_known("{{ tenant.name }}", root()).unwrap_err().contains("undefined"));
    assert!(fill_known("{{ tenantName", root()).is_err());
}

#[test]
fn filters_that_multiply_are_too_much_work() {
    let big = 1_000_000;
    let render = |source: &str| Template::parse(source).unwrap().render(large(big));
    for source in
        ["{{ context.numbers|join(context.big)|length }}", "{{ context.big|trim(context.big) }}"]
    {
        assert!(render(source).unwrap_err().contains(&work()), "{source}");
    }
}

#[test]
fn rendered_texts_have_a_maximum_length() {
    let big = 1024 * 1024;
    let render = |source: &str| Template::parse(source).unwrap().render(large(big));
    let looped = "{% for n in context.numbers %}{{ context.big }}{% endfor %}";
    assert!(render(looped).unwrap_err().contains(&length()));
    let raw = format!("{{% for n in context.numbers %}}{}{{% endfor %}}", "x\n".repeat(50_000));
    assert!(render(&raw).unwrap_err().contains(&length()));
    let nine = "{{ context.big }}".repeat(9);
    assert!(render(&nine).unwrap_err().contains(&length()));
    let eight = "{{ context.big }}".repeat(8);
    assert_eq!(render(&eight).unwrap().len(), RENDERED_BYTES_MAX);
    let floats: Vec<f64> = vec![1e308; 30_000];
    let root = Map::from_iter([("context".to_owned(), json!({"floats": floats}))]);
    let printed = Template::parse("{{ context.floats|join }}").unwrap();
    assert!(printed.render(root).is_err(), "it is too long, or too much work");
}

#[test]
fn a_large_value_can_be_used_many_times_but_not_in_every_iteration() {
    let big = 4_000_000;
    let render = |source: &str| Template::parse(source).unwrap().render(large(big));
    let uses = "{{ 'y' in context.big|lower }}{{ context.big|length }}{{ context.big[0] }}";
    assert_eq!(render(uses).unwrap(), "False4000000x");
    assert_eq!(render(&"{{ 'y' in context.big }}".repeat(5)).unwrap(), "False".repeat(5));
    assert_eq!(render("{{ context.big }}").unwrap().len(), big);
    let each = [
        "'y' in context.big",
        "context.big == context.big",
        "context.big|length",
        "context.big|upper|length",
        "context.big[3000000]",
        "context.numbers == context.numbers",
        "context.big|last",
        "context.big|join",
    ];
    for use_of_it in each {
        let source = format!("{{% for n in context.numbers %}}{{{{ {use_of_it} }}}}{{% endfor %}}");
        let error = render(&source).expect_err(use_of_it);
        assert!(error.contains(&work()), "{use_of_it}: {error}");
    }
    let rows = "{% for n in context.numbers if n < 500 %}{{ n in context.numbers }}{% endfor %}";
    assert_eq!(render(rows).unwrap(), "True".repeat(500));
}

#[test]
fn simple_templates_render_like_minijinja() {
    let root = || {
        let context = json!({"sum": 3, "big": u64::MAX, "less": -7, "text": "a <b>{{ x }}",
            "empty": "", "half": 0.5, "yes": true, "none": null, "list": [1], "in": {"is": "ok"},
            "items": "a key"});
        Map::from_iter([("context".to_owned(), context)])
    };
    let simple = [
        "sum: {{ context.sum }}",
        "{{context.big}}{{ context.less }}",
        "{{ context.text }} }} {",
        "{{ context.empty }}",
        "a\n{{ context.in.is }} b",
        "{{ context.items }}",
    ];
    for source in simple {
        let filled = Simple::read(source).and_then(|simple| simple.render(&root()));
        assert_eq!(filled, rendered(source, root()).ok(), "{source}");
        assert!(filled.is_some(), "{source}");
    }
    let others = [
        "{{ context.half }}",
        "{{ context.yes }}",
        "{{ context.none }}",
        "{{ context.list }}",
        "{{ context.missing }}",
        "{{ context.sum.x }}",
        "{{ context }}",
        "{{- context.sum }}",
        "{{ context.sum -}} x",
        "{{ context.sum }}\n",
        "{{ context['sum'] }}",
        "{{ 'x' }}",
        "{{ -context.sum }}",
        "{{ context.text|upper }}",
        "{# a #}{{ context.sum }}",
    ];
    for source in others {
        let filled = Simple::read(source).and_then(|simple| simple.render(&root()));
        assert_eq!(filled, None, "{source}");
    }
}
