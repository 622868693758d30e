//! Files of the data folder that only their owner may read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes a file of the data folder that only we may read, under another name first: a crash leaves
/// a whole file or none.
pub fn write_private(data: &Path, name: &str, text: &str) -> io::Result<()> {
    let unfinished = data.join(format!("{name}.new"));
    // One that a crash left behind is no one's.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private_file(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    drop(file);
    fs::rename(&unfinished, data.join(name))?;
    if cfg!(unix) {
        File::open(data)?.sync_all()?;
    }
    Ok(())
}

/// A new file that only we may read.
pub fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
pub fn is_exposed(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// Elsewhere the folder's own rights decide.
#[cfg(not(unix))]
pub fn is_exposed(_path: &Path) -> io::Result<bool> {
    Ok(false)
}
