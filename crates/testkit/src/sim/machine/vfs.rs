//! A disk that forgets: a SQLite VFS that passes everything on to the system's and remembers which
//! writes were not synced. At a crash the files are put back to what was synced, plus as much of
//! the rest as the seed lets survive: nothing, the first writes, or some sectors of some of them.
#![allow(unsafe_code, reason = "SQLite takes a VFS as C functions; nothing else here is unsafe")]

use super::power::{Point, Power};
use crate::sim::rng::Rng;
use rusqlite::ffi;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a disk writes at once or not at all.
const SECTOR: usize = 512;

/// A disk for one simulated machine.
pub struct Disk {
    name: String,
    vfs: *mut ffi::sqlite3_vfs,
    /// Leaked: SQLite may hold on to it for as long as the process lives, and it is small.
    shadows: &'static Shadows,
}

struct Shadows {
    system: *mut ffi::sqlite3_vfs,
    power: Arc<Power>,
    /// Syncs that do nothing, as under `synchronous=OFF`.
    ignores_sync: bool,
    files: Mutex<BTreeMap<String, Shadow>>,
    /// What fails, of the file whose name ends so.
    failing: Mutex<Option<(String, Failing)>>,
}

/// What a file's disk does not do any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// It does not sync.
    Syncs,
    /// It does not write.
    Writes,
    /// It has no room.
    Room,
}

/// What would be left of a file.
#[derive(Default)]
struct Shadow {
    synced: Vec<u8>,
    pending: Vec<Change>,
}

enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Truncate(usize),
}

/// A file as SQLite holds it; the system's own file lies right behind it.
#[repr(C)]
struct SimFile {
    base: ffi::sqlite3_file,
    shadows: *const Shadows,
    /// Null for files without a name, which no crash can bring back.
    path: *mut String,
}

static DISKS: AtomicU64 = AtomicU64::new(0);

impl Disk {
    /// A disk under this switch; its VFS is registered until it is dropped.
    pub fn new(power: Arc<Power>, ignores_sync: bool) -> Self {
        let name = format!("waypost-sim-{}", DISKS.fetch_add(1, Ordering::SeqCst));
        let c_name = CString::new(name.clone()).unwrap_or_default();
        // SAFETY: the system's VFS lives as long as the process. What SQLite gets from us is
        // leaked, so it lives as long too.
        unsafe {
            ffi::sqlite3_initialize();
            let system = ffi::sqlite3_vfs_find(std::ptr::null());
            assert!(!system.is_null(), "SQLite has no VFS of its own");
            let files = Mutex::default();
            let failing = Mutex::default();
            let shadows: &'static Shadows =
                Box::leak(Box::new(Shadows { system, power, ignores_sync, files, failing }));
            let mut made = *system;
            made.iVersion = 2;
            made.szOsFile += c_int::try_from(size_of::<SimFile>()).unwrap_or(64);
            made.pNext = std::ptr::null_mut();
            made.zName = c_name.into_raw();
            made.pAppData = std::ptr::from_ref(shadows).cast_mut().cast::<c_void>();
            made.xOpen = Some(open);
            made.xDelete = Some(delete);
            let vfs = Box::into_raw(Box::new(made));
            let registered = ffi::sqlite3_vfs_register(vfs, 0);
            assert_eq!(registered, ffi::SQLITE_OK, "SQLite does not take the VFS");
            Self { name, vfs, shadows }
        }
    }

    /// The name to open databases by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Puts every file to what a power cut left of it. No one may have one open.
    pub fn crash(&self, rng: &mut Rng) -> std::io::Result<()> {
        let files = std::mem::take(&mut *self.shadows.files());
        let mode = rng.below(3);
        for (path, shadow) in files {
            let image = shadow.survivors(mode, rng);
            std::fs::write(&path, image)?;
            let shared_memory = format!("{path}-shm");
            if Path::new(&shared_memory).exists() {
                std::fs::remove_file(shared_memory)?;
            }
        }
        Ok(())
    }

    /// From now on this fails of the file whose name ends so, whatever the power does.
    pub fn fail(&self, ending: &str, failing: Failing) {
        let mut fails = self.shadows.failing.lock().unwrap_or_else(PoisonError::into_inner);
        *fails = Some((ending.to_owned(), failing));
    }

    /// How many writes are not synced.
    pub fn unsynced(&self) -> usize {
        self.shadows.files().values().map(|shadow| shadow.pending.len()).sum()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.shadows.files().clear();
        // SAFETY: it was registered by `new` and stays allocated.
        unsafe {
            ffi::sqlite3_vfs_unregister(self.vfs);
        }
    }
}

impl Shadows {
    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Shadow>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What fails of this file.
    fn failing(&self, path: Option<&str>) -> Option<Failing> {
        let fails = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let (ending, failing) = fails.as_ref()?;
        path.is_some_and(|path| path.ends_with(ending.as_str())).then_some(*failing)
    }

    fn opened(&self, path: &str) {
        let mut files = self.files();
        if !files.contains_key(path) {
            let synced = std::fs::read(path).unwrap_or_default();
            files.insert(path.to_owned(), Shadow { synced, pending: Vec::new() });
        }
    }

    fn changed(&self, path: Option<&str>, change: Change) {
        if let Some(path) = path {
            self.files().entry(path.to_owned()).or_default().pending.push(change);
        }
    }

    fn synced(&self, path: Option<&str>) {
        if self.ignores_sync {
            return;
        }
        let mut files = self.files();
        if let Some(shadow) = path.and_then(|path| files.get_mut(path)) {
            for change in std::mem::take(&mut shadow.pending) {
                change.apply(&mut shadow.synced);
            }
        }
    }
}

impl Shadow {
    /// What a crash leaves: mode 0 what was synced, 1 the first writes and a part of the next, 2
    /// some sectors of some writes, in any order.
    fn survivors(self, mode: u64, rng: &mut Rng) -> Vec<u8> {
        let Self { mut synced, pending } = self;
        let kept = rng.below(pending.len() as u64 + 1) as usize;
        for (index, change) in pending.into_iter().enumerate() {
            match mode {
                0 => {}
                1 if index < kept => change.apply(&mut synced),
                1 if index == kept => change.tear(&mut synced, rng, true),
                1 => {}
                _ => change.tear(&mut synced, rng, false),
            }
        }
        synced
    }
}

impl Change {
    fn apply(self, image: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes } => put(image, at, &bytes),
            Change::Truncate(size) => image.truncate(size),
        }
    }

    /// Applies some of its sectors: the first ones, or any.
    fn tear(self, image: &mut Vec<u8>, rng: &mut Rng, in_order: bool) {
        match self {
            Change::Truncate(size) => {
                if rng.chance(50) {
                    image.truncate(size);
                }
            }
            Change::Write { at, bytes } => {
                let mut from = 0;
                while from < bytes.len() {
                    // Sectors lie on the disk's grid, not on the write's.
                    let to = (from + SECTOR - (at + from) % SECTOR).min(bytes.len());
                    if rng.chance(50) {
                        put(image, at + from, &bytes[from..to]);
                    } else if in_order {
                        return;
                    }
                    from = to;
                }
            }
        }
    }
}

fn put(image: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[at..end].copy_from_slice(bytes);
}

fn place(offset: ffi::sqlite3_int64) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The system's file behind ours.
///
/// # Safety
/// `file` was opened by `open`, or is about to be: SQLite gave it `szOsFile` bytes.
unsafe fn system_file(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    unsafe { file.cast::<u8>().add(size_of::<SimFile>()).cast() }
}

/// Calls the system's method of the same name on the system's file.
macro_rules! pass_on {
    ($file:expr, $method:ident $(, $argument:expr)*) => {
        unsafe {
            let file = system_file($file);
            match (*file).pMethods.as_ref().and_then(|methods| methods.$method) {
                Some(method) => method(file $(, $argument)*),
                None => ffi::SQLITE_IOERR,
            }
        }
    };
}

/// # Safety
/// `file` is one that `open` opened and `close` has not closed.
unsafe fn around<'f>(file: *mut ffi::sqlite3_file) -> (&'f Shadows, Option<&'f str>) {
    unsafe {
        let file = &*file.cast::<SimFile>();
        (&*file.shadows, file.path.as_ref().map(String::as_str))
    }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    unsafe {
        (*file).pMethods = std::ptr::null();
        let shadows = &*(*vfs).pAppData.cast::<Shadows>();
        let Some(system_open) = (*shadows.system).xOpen else { return ffi::SQLITE_CANTOPEN };
        if !shadows.power.is_on() {
            return ffi::SQLITE_CANTOPEN;
        }
        let opened = system_open(shadows.system, name, system_file(file), flags, flags_out);
        if opened != ffi::SQLITE_OK {
            return opened;
        }
        let path = if name.is_null() {
            std::ptr::null_mut()
        } else {
            let path = CStr::from_ptr(name).to_string_lossy().into_owned();
            shadows.opened(&path);
            Box::into_raw(Box::new(path))
        };
        let made = file.cast::<SimFile>();
        (*made).shadows = std::ptr::from_ref(shadows);
        (*made).path = path;
        (*made).base.pMethods = &raw const METHODS;
        ffi::SQLITE_OK
    }
}

unsafe extern "C" fn delete(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    sync_folder: c_int,
) -> c_int {
    unsafe {
        let shadows = &*(*vfs).pAppData.cast::<Shadows>();
        if !shadows.power.is_on() {
            return ffi::SQLITE_IOERR_DELETE;
        }
        let Some(system_delete) = (*shadows.system).xDelete else {
            return ffi::SQLITE_IOERR_DELETE;
        };
        let deleted = system_delete(shadows.system, name, sync_folder);
        if deleted == ffi::SQLITE_OK {
            let path = CStr::from_ptr(name).to_string_lossy().into_owned();
            shadows.files().remove(&path);
        }
        deleted
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let closed = pass_on!(file, xClose);
    unsafe {
        let made = file.cast::<SimFile>();
        if !(*made).path.is_null() {
            drop(Box::from_raw((*made).path));
            (*made).path = std::ptr::null_mut();
        }
        (*file).pMethods = std::ptr::null();
    }
    closed
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    pass_on!(file, xRead, into, amount, offset)
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let (shadows, path) = unsafe { around(file) };
    match shadows.failing(path) {
        Some(Failing::Writes) => return ffi::SQLITE_IOERR_WRITE,
        Some(Failing::Room) => return ffi::SQLITE_FULL,
        Some(Failing::Syncs) | None => {}
    }
    if !shadows.power.is_on() {
        return ffi::SQLITE_IOERR_WRITE;
    }
    let written = pass_on!(file, xWrite, from, amount, offset);
    if written != ffi::SQLITE_OK {
        return written;
    }
    let amount = usize::try_from(amount).unwrap_or(0);
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), amount) }.to_vec();
    shadows.changed(path, Change::Write { at: place(offset), bytes });
    if shadows.power.passes(Point::DiskWrite) { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_WRITE }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    let (shadows, path) = unsafe { around(file) };
    if !shadows.power.is_on() {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    let cut = pass_on!(file, xTruncate, size);
    if cut == ffi::SQLITE_OK {
        shadows.changed(path, Change::Truncate(place(size)));
    }
    cut
}

/// The real file need not be synced: what survives is decided here, not by the system.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    let (shadows, path) = unsafe { around(file) };
    if shadows.failing(path) == Some(Failing::Syncs) || !shadows.power.passes(Point::DiskSync) {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    shadows.synced(path);
    ffi::SQLITE_OK
}

unsafe extern "C" fn file_size(
    file: *mut ffi::sqlite3_file,
    size: *mut ffi::sqlite3_int64,
) -> c_int {
    pass_on!(file, xFileSize, size)
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    pass_on!(file, xLock, level)
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    pass_on!(file, xUnlock, level)
}

unsafe extern "C" fn check_reserved_lock(
    file: *mut ffi::sqlite3_file,
    result: *mut c_int,
) -> c_int {
    pass_on!(file, xCheckReservedLock, result)
}

unsafe extern "C" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    argument: *mut c_void,
) -> c_int {
    pass_on!(file, xFileControl, operation, argument)
}

unsafe extern "C" fn sector_size(file: *mut ffi::sqlite3_file) -> c_int {
    pass_on!(file, xSectorSize)
}

unsafe extern "C" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    pass_on!(file, xDeviceCharacteristics)
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    page: c_int,
    page_bytes: c_int,
    extend: c_int,
    mapped: *mut *mut c_void,
) -> c_int {
    pass_on!(file, xShmMap, page, page_bytes, extend, mapped)
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    offset: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    pass_on!(file, xShmLock, offset, count, flags)
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    unsafe {
        let file = system_file(file);
        if let Some(barrier) = (*file).pMethods.as_ref().and_then(|methods| methods.xShmBarrier) {
            barrier(file);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    pass_on!(file, xShmUnmap, delete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{Connection, OpenFlags};

    fn connect(path: &Path, disk: &Disk) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::default();
        let connection = Connection::open_with_flags_and_vfs(path, flags, disk.name())?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection)
    }

    fn rows_after_a_crash(ignores_sync: bool, mode: u64) -> Option<i64> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let power = Arc::new(Power::default());
        let disk = Disk::new(power.clone(), ignores_sync);
        let connection = connect(&path, &disk).unwrap();
        connection.execute_batch("CREATE TABLE t (x)").unwrap();
        for _ in 0..50 {
            connection.execute("INSERT INTO t VALUES (randomblob(300))", ()).unwrap();
        }
        power.switch_off();
        drop(connection);
        disk.crash(&mut Rng::stream(mode, 9)).unwrap();
        power.switch_on(None);
        let connection = connect(&path, &disk).ok()?;
        connection.query_row("SELECT count(*) FROM t", (), |row| row.get(0)).ok()
    }

    #[test]
    fn only_synced_rows_survive_a_crash() {
        assert!((0..9).all(|mode| rows_after_a_crash(false, mode) == Some(50)));
        assert!((0..9).any(|mode| rows_after_a_crash(true, mode) != Some(50)));
    }

    #[test]
    fn a_torn_write_keeps_whole_sectors() {
        let mut image = vec![0u8; 2_048];
        let bytes = vec![1u8; 1_024];
        Change::Write { at: 256, bytes }.tear(&mut image, &mut Rng::new(5), false);
        for sector in image.chunks(SECTOR) {
            let inside: Vec<u8> = sector.iter().copied().filter(|byte| *byte == 1).collect();
            assert!(inside.is_empty() || inside.len() >= 256, "a sector is torn");
        }
        assert_eq!(image[..256], vec![0u8; 256]);
    }
}
