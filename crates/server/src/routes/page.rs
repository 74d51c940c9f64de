//! Pages of lists. This is the one place that says where a page ends: at its limit of items or at a mebibyte, whichever
//! comes first. One item is on it at least, however large; `next` says where the list goes on, and only a list without
//! `next` is at its end.

use std::io::{self, Write};

use axum::response::Response;
use serde::Serialize;

use super::text;
use crate::answers::{Pieces, Reserved};

/// The items of one page, as JSON.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// Memory for what a page is made of: a value takes several times the room of its JSON.
pub(crate) const READ_BYTES: usize = 8 << 20;

/// Says that an answer's memory is counted already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryCounted;

#[derive(Debug)]
pub(crate) struct PageBuilder {
    limit: usize,
    items: usize,
    bytes: usize,
    pieces: Pieces,
}

impl PageBuilder {
    pub(crate) fn new(limit: usize) -> PageBuilder {
        let mut pieces = Pieces::default();
        // Writing into memory can't fail.
        let _ok = pieces.write_all(br#"{"items":["#);
        PageBuilder { limit, items: 0, bytes: 0, pieces }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Puts an item on the page. False when it belongs on the next one.
    pub(crate) fn push(&mut self, item: &impl Serialize) -> bool {
        if self.items == self.limit {
            return false;
        }
        let mark = self.pieces.mark();
        let before = self.pieces.len();
        if self.items > 0 {
            let _ok = self.pieces.write_all(b",");
        }
        if serde_json::to_writer(&mut self.pieces, item).is_err() {
            // Our own shapes all have a JSON form; were there one without, null would stand for it.
            self.pieces.rewind(mark);
            let _ok = self.pieces.write_all(if self.items > 0 { b",null" } else { b"null" });
        }
        let bytes = self.bytes + self.pieces.len() - before;
        if bytes > PAGE_BYTES && self.items > 0 {
            self.pieces.rewind(mark);
            return false;
        }
        self.items += 1;
        self.bytes = bytes;
        true
    }

    pub(crate) fn finish(mut self, next: Option<&str>) -> Page {
        let _ok = self.pieces.write_all(br#"],"next":"#);
        let _ok = serde_json::to_writer(&mut self.pieces, &next);
        let _ok = self.pieces.write_all(b"}");
        Page(self.pieces)
    }
}

/// A page that is complete.
#[derive(Debug)]
pub(crate) struct Page(Pieces);

impl Page {
    /// The answer. What was reserved for making it is kept for its bytes alone, until they are taken.
    pub(crate) fn into_response(self, reserved: Option<Reserved>) -> Response {
        let counted = reserved.is_some();
        let reserved = reserved.map(|mut reserved| {
            reserved.shrink_to(self.0.len());
            reserved
        });
        let mut response = text(200, "application/json", self.0.into_body(reserved));
        if counted {
            response.extensions_mut().insert(MemoryCounted);
        }
        response
    }
}

/// As many of the items as a page may hold, and one that it may not, where there is one.
pub(crate) fn enough<T: Serialize>(items: impl Iterator<Item = T>, limit: usize) -> Vec<T> {
    let mut bytes = 0;
    let fits = |item: &T| {
        let full = bytes > PAGE_BYTES;
        bytes += json_bytes(item);
        !full
    };
    items.take(limit + 1).take_while(fits).collect()
}

/// How long a value is as JSON.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // Counting can't fail.
    let _ok = serde_json::to_writer(&mut count, value);
    count.0
}

/// A page of items that are all at hand, in their order. `id` is an item's place in the list.
pub(crate) fn of_items<T: Serialize>(
    items: impl Iterator<Item = T>,
    limit: usize,
    id: impl Fn(&T) -> String,
) -> Response {
    let mut page = PageBuilder::new(limit);
    let mut last = None;
    let mut next = None;
    for item in items {
        if !page.push(&item) {
            next = last;
            break;
        }
        last = Some(id(&item));
    }
    page.finish(next.as_deref()).into_response(None)
}

#[cfg(test)]
mod tests {
    use abide_api::types::Page as WirePage;
    use http_body_util::BodyExt;
    use serde_json::Value;

    use super::*;

    async fn page(sizes: &[usize], limit: usize) -> (Vec<usize>, Option<String>, usize) {
        let items = sizes.iter().map(|size| "x".repeat(*size)).enumerate();
        let response = of_items(items, limit, |(number, _)| number.to_string());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let page: WirePage<Value> = serde_json::from_slice(&bytes).unwrap();
        let sizes = page.items.iter().map(|item| item[1].as_str().unwrap().len()).collect();
        (sizes, page.next, bytes.len())
    }

    #[tokio::test]
    async fn a_page_ends_at_its_items_or_at_its_bytes_and_has_one_item() {
        assert_eq!(page(&[], 5).await, (vec![], None, 24));
        let (sizes, next, _) = page(&[1, 2, 3], 3).await;
        assert_eq!((sizes, next), (vec![1, 2, 3], None));
        let (sizes, next, _) = page(&[1, 2, 3], 2).await;
        assert_eq!((sizes, next.as_deref()), (vec![1, 2], Some("1")));
        let (half, large) = (PAGE_BYTES / 2 - 10, PAGE_BYTES * 2);
        let (sizes, next, bytes) = page(&[half, half, 1, 1], 9).await;
        assert_eq!((sizes, next.as_deref()), (vec![half, half], Some("1")));
        assert!(bytes <= PAGE_BYTES + 64, "{bytes}");
        let (sizes, next, _) = page(&[large, 1], 9).await;
        assert_eq!((sizes, next.as_deref()), (vec![large], Some("0")));
        let (sizes, next, _) = page(&[1, large], 9).await;
        assert_eq!((sizes, next.as_deref()), (vec![1], Some("0")));
    }
}
