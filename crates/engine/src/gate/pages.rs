//! Fills pages of lists that rights narrow. The store knows no rights, so a page of it can hold
//! fewer rows than requested, or none: the store is read on until the page is full.

use super::Gate;
use crate::refusal::Result;
use kernel::contracts::policy::Resource;
use kernel::contracts::{ListPage, PageRequest, StoreError};
use kernel::tool::call::Caller;
use kernel::values::caller::Act;

/// How often the store is read for one page. After that the page is short, and its cursor leads on:
/// a caller who may read little of a long list holds no one up.
const READS_MAX: usize = 64;

impl Gate {
    /// A page of what the caller may read, out of pages of what there is.
    pub(crate) async fn fill_page<T, F>(
        &self,
        caller: &Caller,
        page: &PageRequest,
        read: impl Fn(PageRequest) -> F,
        resource: impl Fn(&T) -> Resource<'_>,
    ) -> Result<ListPage<T>>
    where
        F: Future<Output = Result<ListPage<T>, StoreError>>,
    {
        if self.is_free(caller, Act::Read) {
            return Ok(read(page.clone()).await?);
        }
        let mut items = Vec::new();
        let mut next = page.clone();
        for _ in 0..READS_MAX {
            let found = read(next.clone()).await?;
            let may_read = self.may_read(caller, &found.items, &resource);
            let missing = page.limit.saturating_sub(items.len());
            if let Some(fitting) = fitting(&may_read, missing) {
                // Only the store knows the cursor of a place in the middle: it is read up to there.
                next.limit = fitting;
                continue;
            }
            let mut may_read = may_read.into_iter();
            let found_here = found.items.into_iter();
            items.extend(found_here.filter(|_| may_read.next().unwrap_or(false)));
            next = PageRequest { cursor: found.next_cursor, limit: page.limit };
            if next.cursor.is_none() || items.len() >= page.limit {
                break;
            }
        }
        Ok(ListPage { items, next_cursor: next.cursor })
    }

    fn may_read<T>(
        &self,
        caller: &Caller,
        items: &[T],
        resource: impl Fn(&T) -> Resource<'_>,
    ) -> Vec<bool> {
        let resources: Vec<Resource<'_>> = items.iter().map(resource).collect();
        self.read_of(caller, &resources)
    }
}

/// How many rows have just as many of these as are missing, where there are more.
fn fitting(may_read: &[bool], missing: usize) -> Option<usize> {
    let mut readable = may_read.iter().enumerate().filter(|(_, is_read)| **is_read);
    let last = readable.nth(missing.checked_sub(1)?);
    readable.next()?;
    last.map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn a_full_page_cuts_off_further_rows() {
        let rows = [true, false, true, true, false];
        assert_eq!(fitting(&rows, 1), Some(1));
        assert_eq!(fitting(&rows, 2), Some(3));
        assert_eq!(fitting(&rows, 3), None, "all of them fit");
        assert_eq!(fitting(&rows, 9), None);
        assert_eq!(fitting(&[], 1), None);
    }
}
