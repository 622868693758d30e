//! What this machine is: numbers without it cannot be compared.

use std::path::Path;
use std::process::Command;

use crate::Result;

/// Cores, CPU, memory and kernel in one line.
pub fn describe() -> Result<String> {
    let cores = output_of("nproc", &[])?;
    // Not every architecture names its CPU.
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|_| "unnamed CPU".to_owned());
    let memory = kilobytes(&field("/proc/meminfo", "MemTotal")?)?;
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let gigabytes = (memory * 1024) as f64 / 1e9;
    Ok(format!("{cores} cores, {cpu}, {gigabytes:.1} GB of memory, Linux {}", kernel.trim()))
}

/// The type of the file system that holds `dir`; a tmpfs makes every sync free.
pub fn file_system(dir: &Path) -> Result<String> {
    output_of("stat", &["-f", "-c", "%T", &dir.to_string_lossy()])
}

/// The present time in UTC.
pub fn date() -> Result<String> {
    output_of("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"])
}

/// The resident memory of a process in bytes.
pub fn rss_bytes(pid: u32) -> Result<u64> {
    kilobytes(&field(&format!("/proc/{pid}/status"), "VmRSS")?).map(|size| size * 1024)
}

/// How many files and sockets a process has open.
pub fn open_files(pid: u32) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

fn kilobytes(text: &str) -> Result<u64> {
    let number = text.split_whitespace().next().ok_or("a size without a number")?;
    Ok(number.parse()?)
}

fn field(path: &str, name: &str) -> Result<String> {
    let text = std::fs::read_to_string(path)?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(known, _)| known.trim() == name);
    let (_, value) = found.ok_or_else(|| format!("`{path}` has no `{name}`"))?;
    Ok(value.trim().to_owned())
}

fn output_of(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("`{program}` failed: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
