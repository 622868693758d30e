//! A folder as tools: files are read, written and listed in it, and nothing outside of it is
//! reached. A path names what is below the folder; one that is absolute, goes up or leads over a
//! link is refused.

use futures::future::BoxFuture;
use kernel::contracts::{Spawn, Tool};
use kernel::tool::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Yields};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// How many bytes a file may have that is read or written.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How many entries of a folder are listed.
const ENTRIES_MAX: usize = 1_000;
/// The end of the name of a file that is being written.
const UNFINISHED: &str = ".unfinished";

/// The folder.
struct Jail {
    /// As it really is: no part of it is a link.
    root: PathBuf,
    /// One file is written at a time: two writes of it have the same unfinished one.
    writing: Mutex<()>,
    spawn: Arc<dyn Spawn>,
}

/// What a tool does at a place, with its arguments. It blocks.
type Act = fn(&Jail, &Value) -> Result<Value, ToolError>;

struct FileTool {
    spec: Arc<ToolSpec>,
    jail: Arc<Jail>,
    act: Act,
}

impl FileTool {
    async fn run(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        let (sender, done) = oneshot::channel();
        let (jail, act, arguments) = (self.jail.clone(), self.act, call.arguments.clone());
        let working = async move {
            // The caller may be gone.
            let _ = sender.send(act(&jail, &arguments));
        };
        self.jail.spawn.thread("files", Box::pin(working));
        let lost = || ToolError::unknown("WorkLost", "the work on the file broke off");
        done.await.unwrap_or_else(|_| Err(lost())).map(ToolOutput::Value)
    }
}

impl Tool for FileTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(call))
    }
}

/// The tools over this folder, which is made where it is not there. One that is only read has no
/// tool that writes.
pub fn files(
    folder: &Path,
    is_read_only: bool,
    spawn: Arc<dyn Spawn>,
) -> io::Result<Vec<Arc<dyn Tool>>> {
    fs::create_dir_all(folder)?;
    let (root, writing) = (folder.canonicalize()?, Mutex::default());
    let jail = Arc::new(Jail { root, writing, spawn });
    let tool = |name: &str, about: &str, reach: Reach, inputs: &[&str], act: Act| {
        let spec = Arc::new(spec(name, about, reach, inputs));
        let tool: Arc<dyn Tool> = Arc::new(FileTool { spec, jail: jail.clone(), act });
        tool
    };
    let (reads, path) = (Reach::Reads, &["path"]);
    let mut tools = vec![
        tool("filesystem.readFile", "Reads a text file of the folder.", reads, path, read),
        tool("filesystem.listDirectory", "Lists a folder in the folder.", reads, path, list),
    ];
    if !is_read_only {
        let about = "Writes a text file of the folder, in the place of one that is there.";
        let inputs = &["path", "content"];
        tools.push(tool("filesystem.writeFile", about, Reach::Writes, inputs, write));
    }
    Ok(tools)
}

fn spec(name: &str, about: &str, reach: Reach, inputs: &[&str]) -> ToolSpec {
    let text = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
    let properties: serde_json::Map<String, Value> = inputs.iter().map(text).collect();
    let schema = json!({"type": "object", "properties": properties, "required": inputs});
    ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: about.to_owned(),
        input_schema: Arc::new(schema),
        output_schema: None,
        reach,
        idempotent: true,
        tags: vec!["files".to_owned()],
        pace: Pace::Quick,
        yields: Yields::Content,
        unrecorded: false,
        listed: None,
    }
}

impl Jail {
    /// Where a path leads. Each part is checked: a link would lead elsewhere.
    fn place(&self, path: &str) -> Result<PathBuf, ToolError> {
        let refused = |why: &str| {
            let message = format!("`{path}` is refused: {why}");
            ToolError::not_sent("PathRefused", message)
                .hint("name a file below the folder, such as `notes/a.txt`")
        };
        let mut place = self.root.clone();
        for part in Path::new(path).components() {
            let name = match part {
                Component::CurDir => continue,
                Component::Normal(name) => name,
                Component::ParentDir => return Err(refused("it goes up with `..`")),
                Component::RootDir | Component::Prefix(_) => {
                    return Err(refused("it is absolute"));
                }
            };
            place.push(name);
            let found = fs::symlink_metadata(&place);
            if found.is_ok_and(|found| found.file_type().is_symlink()) {
                return Err(refused("a part of it is a link"));
            }
        }
        Ok(place)
    }
}

fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments[name].as_str().unwrap_or_default()
}

fn failed(path: &str, error: &io::Error) -> ToolError {
    ToolError::failed("FileError", format!("`{path}`: {error}"))
}

fn too_large(path: &str) -> ToolError {
    let message = format!("`{path}` has more than {FILE_BYTES_MAX} bytes");
    ToolError::failed("FileTooLarge", message)
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn read(jail: &Jail, arguments: &Value) -> Result<Value, ToolError> {
    let path = text(arguments, "path");
    let place = jail.place(path)?;
    let found = fs::symlink_metadata(&place).map_err(|error| failed(path, &error))?;
    if !found.is_file() {
        return Err(ToolError::failed("FileError", format!("`{path}` is no file")));
    }
    if found.len() > FILE_BYTES_MAX {
        return Err(too_large(path));
    }
    let read = fs::read_to_string(&place).map_err(|error| failed(path, &error))?;
    Ok(said(&read))
}

/// Writes beside the file first: it is there whole or as it was. A link in either place is replaced
/// and never followed.
fn write(jail: &Jail, arguments: &Value) -> Result<Value, ToolError> {
    let (path, content) = (text(arguments, "path"), text(arguments, "content"));
    let place = jail.place(path)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large(path));
    }
    // The folder itself may be gone: what is beside it is outside.
    let is_folder = place == jail.root || place.is_dir();
    let (Some(folder), Some(name), false) = (place.parent(), place.file_name(), is_folder) else {
        return Err(ToolError::failed("FileError", format!("`{path}` is no file")));
    };
    let unfinished = folder.join(format!(".{}{UNFINISHED}", name.to_string_lossy()));
    let _writing = jail.writing.lock().unwrap_or_else(PoisonError::into_inner);
    let written = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        if fs::symlink_metadata(&unfinished).is_ok() {
            fs::remove_file(&unfinished)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &place)
    };
    written().map_err(|error| {
        // A part of a file is of no use; one that stays is replaced by the next write.
        let _ = fs::remove_file(&unfinished);
        failed(path, &error)
    })?;
    Ok(said(&format!("wrote {} bytes to `{path}`", content.len())))
}

fn list(jail: &Jail, arguments: &Value) -> Result<Value, ToolError> {
    let path = text(arguments, "path");
    let place = jail.place(path)?;
    let entries = fs::read_dir(&place).map_err(|error| failed(path, &error))?;
    let mut names = Vec::new();
    for entry in entries.take(ENTRIES_MAX) {
        let entry = entry.map_err(|error| failed(path, &error))?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push(if is_folder { format!("{name}/") } else { name });
    }
    names.sort_unstable();
    let mut listed = said(&names.join("\n"));
    listed["structuredContent"] = json!({"entries": names});
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Spawn for Nothing {
        fn task(&self, _name: &'static str, _future: BoxFuture<'static, ()>) {}
        fn thread(&self, _name: &'static str, _future: BoxFuture<'static, ()>) {}
    }

    fn jail(folder: &Path) -> Jail {
        let (root, writing) = (folder.canonicalize().unwrap(), Mutex::default());
        Jail { root, writing, spawn: Arc::new(Nothing) }
    }

    #[test]
    fn files_are_written_read_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let jail = jail(folder.path());
        write(&jail, &json!({"path": "notes/a.txt", "content": "one"})).unwrap();
        write(&jail, &json!({"path": "./notes/a.txt", "content": "two"})).unwrap();
        let read = read(&jail, &json!({"path": "notes/a.txt"})).unwrap();
        assert_eq!(read["content"][0]["text"], "two");
        let listed = list(&jail, &json!({"path": "."})).unwrap();
        assert_eq!(listed["structuredContent"], json!({"entries": ["notes/"]}));
        let listed = list(&jail, &json!({"path": "notes"})).unwrap();
        assert_eq!(listed["content"][0]["text"], "a.txt", "nothing unfinished is left");
        for wrong in ["none.txt", "notes", ""] {
            assert!(super::read(&jail, &json!({"path": wrong})).is_err(), "{wrong}");
        }
        assert!(write(&jail, &json!({"path": "notes", "content": ""})).is_err());
    }

    #[test]
    fn writes_of_one_file_at_the_same_time_leave_a_whole_one() {
        const BYTES: usize = 64 * 1024;
        let folder = tempfile::tempdir().unwrap();
        let jail = jail(folder.path());
        std::thread::scope(|scope| {
            for letter in ["a", "b", "c"] {
                let jail = &jail;
                scope.spawn(move || {
                    let content = letter.repeat(BYTES);
                    for _ in 0..20 {
                        write(jail, &json!({"path": "a.txt", "content": content})).unwrap();
                    }
                });
            }
        });
        let read = read(&jail, &json!({"path": "a.txt"})).unwrap();
        let text = read["content"][0]["text"].as_str().unwrap();
        assert!(text.len() == BYTES && text.replace(&text[..1], "").is_empty());
        let listed = list(&jail, &json!({"path": ""})).unwrap();
        assert_eq!(listed["structuredContent"], json!({"entries": ["a.txt"]}));
    }

    #[test]
    fn a_folder_that_is_gone_is_not_written_as_a_file() {
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("in");
        fs::create_dir(&inside).unwrap();
        let jail = jail(&inside);
        fs::remove_dir(&inside).unwrap();
        for path in ["", "."] {
            let refused = write(&jail, &json!({"path": path, "content": "x"})).unwrap_err();
            assert_eq!(refused.fault.name, "FileError", "{path}");
        }
        assert_eq!(fs::read_dir(around.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_outside_is_not_reached() {
        let around = tempfile::tempdir().unwrap();
        let (inside, secret) = (around.path().join("in"), around.path().join("secret.txt"));
        fs::create_dir(&inside).unwrap();
        fs::write(&secret, "secret").unwrap();
        let jail = jail(&inside);
        let absolute = secret.to_str().unwrap();
        for path in ["../secret.txt", "a/../../secret.txt", "a/..", "/", absolute] {
            for act in [read as Act, write, list] {
                let refused = act(&jail, &json!({"path": path, "content": "x"})).unwrap_err();
                assert_eq!(refused.fault.name, "PathRefused", "{path}");
            }
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out() {
        use std::os::unix::fs::symlink;
        let around = tempfile::tempdir().unwrap();
        let (inside, outside) = (around.path().join("in"), around.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a.txt"), "secret").unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        symlink(outside.join("a.txt"), inside.join("a.txt")).unwrap();
        symlink(outside.join("a.txt"), inside.join(".b.txt.unfinished")).unwrap();
        let jail = jail(&inside);
        for path in ["folder/a.txt", "folder", "a.txt"] {
            for act in [read as Act, write, list] {
                let refused = act(&jail, &json!({"path": path, "content": "x"})).unwrap_err();
                assert_eq!(refused.fault.name, "PathRefused", "{path}");
            }
        }
        write(&jail, &json!({"path": "b.txt", "content": "mine"})).unwrap();
        assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "secret");
        assert_eq!(fs::read_to_string(inside.join("b.txt")).unwrap(), "mine");
    }

    #[test]
    fn a_folder_that_is_only_read_has_no_tool_that_writes() {
        let folder = tempfile::tempdir().unwrap();
        let names = |is_read_only: bool| -> Vec<String> {
            let tools = files(folder.path(), is_read_only, Arc::new(Nothing)).unwrap();
            tools.iter().map(|tool| tool.spec().name.to_string()).collect()
        };
        assert_eq!(names(true), ["filesystem.readFile", "filesystem.listDirectory"]);
        assert_eq!(names(false).len(), 3);
    }
}
