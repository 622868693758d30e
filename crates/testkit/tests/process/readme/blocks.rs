//! The fenced blocks of a Markdown text, and which of them are commands and output.

/// The languages of blocks that show what a command printed.
const OUTPUTS: [&str; 2] = ["json", "text"];

/// One fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The word after the fence.
    pub(super) language: String,
    /// The line of the opening fence, from 1.
    pub(super) line: usize,
    /// What stands between the fences.
    pub(super) text: String,
}

/// A block of commands with `curl`, and the block of output that follows it.
#[derive(Debug)]
pub(super) struct Script<'a> {
    pub(super) input: &'a Block,
    pub(super) output: &'a Block,
}

/// All fenced blocks, in order.
pub(super) fn read(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in markdown.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, open.take()) {
            (Some(language), None) => {
                let language = language.trim().to_owned();
                open = Some(Block { language, line: index + 1, text: String::new() });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert_eq!(open, None, "a fence is never closed");
    blocks
}

/// The commands of a block, one per line; what continues a line is joined, comments are left out.
pub(super) fn commands(block: &Block) -> Vec<String> {
    let joined = block.text.replace("\\\n", " ");
    let bare = joined.lines().map(|line| line.split(" #").next().unwrap_or_default().trim());
    bare.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// Every `sh` block with a `curl`, with its output; panics where there is none.
pub(super) fn scripts(blocks: &[Block]) -> Vec<Script<'_>> {
    let mut scripts = Vec::new();
    for (place, input) in blocks.iter().enumerate() {
        if input.language != "sh" || !input.text.contains("curl") {
            continue;
        }
        let next = blocks.get(place + 1);
        match next.filter(|next| OUTPUTS.contains(&next.language.as_str())) {
            Some(output) => scripts.push(Script { input, output }),
            None => panic!("README line {}: no `json` or `text` block with its output", input.line),
        }
    }
    scripts
}

/// The names of the variables that a script sets at the beginning of a line.
pub(super) fn variables(script: &str) -> Vec<&str> {
    let names = script.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
    let is_name = |name: &&str| {
        let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    names.filter(is_name).collect()
}

#[test]
fn commands_and_their_output_are_found() {
    let text = "# A\n```sh\ncargo run -- up --demo   # all of it\n```\nand\n\
                ```sh\n# first\nID=$(curl -s a \\\n  -d b=c)\ncurl -s \"d/$ID\"\n```\n\
                ```json\n{}\n```\n";
    let blocks = read(text);
    assert_eq!(commands(&blocks[0]), ["cargo run -- up --demo"]);
    assert_eq!(commands(&blocks[1]), ["ID=$(curl -s a    -d b=c)", "curl -s \"d/$ID\""]);
    let scripts = scripts(&blocks);
    assert_eq!(scripts.len(), 1);
    assert_eq!((scripts[0].input.line, scripts[0].output.text.as_str()), (6, "{}\n"));
    assert_eq!(variables(&scripts[0].input.text), ["ID"]);
}
