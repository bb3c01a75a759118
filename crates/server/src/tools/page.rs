//! Pages: lists are cut by key and by size, and say whether more follow.

use crate::error::ToolError;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract::{argument::PageLimit, envelope::MAX_REPLY_DATA_BYTES};
use serde::{Serialize, de::DeserializeOwned};

/// What a page may hold besides its rows: the names of its members and the cursor.
const OVERHEAD_BYTES: usize = 1024;

/// One page of a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// Whether there are rows after these.
    pub(crate) more: bool,
    /// The `cursor` of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// How many rows to fetch to know whether more follow.
pub(crate) fn fetch(limit: Option<PageLimit>) -> i64 {
    i64::from(limit.unwrap_or_default().rows()) + 1
}

/// Makes a page of what was fetched with [`fetch`]. A page that would be too large for a reply is cut at a row, and its cursor goes on
/// from there.
///
/// # Errors
///
/// When a row cannot be serialised, or a single row is too large.
pub(crate) fn page<T: Serialize, K: Serialize>(
    mut rows: Vec<T>,
    limit: Option<PageLimit>,
    key: impl Fn(&T) -> K,
) -> Result<Page<T>, ToolError> {
    let wanted = usize::from(limit.unwrap_or_default().rows());
    let mut kept = 0;
    let mut bytes = OVERHEAD_BYTES;
    for row in rows.iter().take(wanted) {
        bytes += serde_json::to_vec(row)?.len() + 1;
        if bytes > MAX_REPLY_DATA_BYTES {
            break;
        }
        kept += 1;
    }
    if kept == 0 && !rows.is_empty() {
        return Err(ToolError::TooLarge);
    }
    let more = rows.len() > kept;
    rows.truncate(kept);
    let next_cursor = match rows.last() {
        Some(last) if more => Some(BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(&key(last))?)),
        _ => None,
    };
    Ok(Page {
        rows,
        more,
        next_cursor,
    })
}

/// The key in a cursor, if there is one. A cursor says where to go on and grants nothing: rows are filtered all the same.
///
/// # Errors
///
/// [`ToolError::Invalid`] where it is not one that a page gave out.
pub(crate) fn after<K: DeserializeOwned>(cursor: Option<&str>) -> Result<Option<K>, ToolError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let key = BASE64_URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let no_nul = |_: &K| !cursor_holds_nul(cursor);
    key.filter(no_nul)
        .map(Some)
        .ok_or_else(|| ToolError::Invalid("cursor: not one that this list gave out".to_owned()))
}

/// A text in a cursor goes to the database like any other argument.
fn cursor_holds_nul(cursor: &str) -> bool {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains("\\u0000")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rows: u16) -> Option<PageLimit> {
        serde_json::from_value(serde_json::json!(rows)).unwrap()
    }

    #[test]
    fn a_full_page_says_where_to_go_on() {
        let page = page(vec![1, 2, 3], limit(2), |row| *row).unwrap();
        assert_eq!((page.rows.as_slice(), page.more), ([1, 2].as_slice(), true));
        assert_eq!(after::<i32>(page.next_cursor.as_deref()).unwrap(), Some(2));
    }

    #[test]
    fn the_last_page_says_so() {
        let page = page(vec![1, 2], limit(2), |row| *row).unwrap();
        assert!(!page.more && page.next_cursor.is_none());
    }

    /// fault 37: cut by rows, and nothing between two pages is lost
    #[test]
    fn a_large_page_is_cut_at_a_row() {
        let rows: Vec<String> = (0..200).map(|n| format!("{n}{}", "x".repeat(1000))).collect();
        let page = page(rows.clone(), limit(200), Clone::clone).unwrap();
        assert!(serde_json::to_vec(&page).unwrap().len() <= MAX_REPLY_DATA_BYTES);
        assert!(page.more && page.rows.len() > 20);
        let last: Option<String> = after(page.next_cursor.as_deref()).unwrap();
        assert_eq!(last.as_ref(), page.rows.last());
    }

    #[test]
    fn a_made_up_cursor_is_refused() {
        for cursor in ["", "%%%", "AAAA", "bnVsbA"] {
            assert!(after::<i32>(Some(cursor)).is_err(), "{cursor}");
        }
        let nul = BASE64_URL_SAFE_NO_PAD.encode("\"a\\u0000\"");
        assert!(after::<String>(Some(&nul)).is_err());
    }
}
