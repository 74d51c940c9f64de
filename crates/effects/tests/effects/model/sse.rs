//! Server-sent events.

use abide_effects::model::remote::sse::Events;
use proptest::prelude::*;

fn all(pieces: &[&[u8]]) -> Vec<String> {
    let mut events = Events::default();
    let taken = pieces.iter().flat_map(|piece| events.push_bytes(piece).unwrap());
    taken.map(|event| String::from_utf8(event).unwrap()).collect()
}

#[test]
fn events_end_with_an_empty_line() {
    for (stream, expected) in [
        ("data: a\n\n", vec!["a"]),
        ("data:a\n\ndata:  b\n\n", vec!["a", " b"]),
        ("data: a\ndata: b\n\n", vec!["a\nb"]),
        ("data: a\r\ndata: b\r\n\r\n", vec!["a\nb"]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", vec!["a", "b", "c"]),
        ("\u{feff}data: a\n\n\u{feff}data: b\n\n", vec!["a"]),
        ("event: x\nid: 1\nretry: 5\ndata: a\n: a comment\n\n", vec!["a"]),
        ("event: x\n\n: data: no\n\n", vec![]),
        ("data\n\ndata:\n\n", vec!["", ""]),
        ("data: a\n", vec![]),
        ("data: a\n\ndata: b", vec!["a"]),
        ("datax: a\nDATA: b\n\n", vec![]),
        ("data: a: b\n\n", vec!["a: b"]),
    ] {
        assert_eq!(all(&[stream.as_bytes()]), expected, "{stream:?}");
    }
}

#[test]
fn an_event_has_a_size() {
    let mib = vec![b'x'; 1 << 20];
    let mut events = Events::default();
    events.push_bytes(b"data: ").unwrap();
    let taken = (0..9).map(|_| events.push_bytes(&mib)).filter(Result::is_err).count();
    assert!(taken > 0);
}

proptest! {
    /// However the bytes are cut into pieces and the lines end, the events are the same.
    #[test]
    fn pieces_do_not_matter(
        lines in prop::collection::vec("(data:|data: |: |event: |\u{feff}|)[a-zé:]{0,6}", 0..12),
        ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n"]), 12),
        cuts in prop::collection::vec(0usize..200, 0..12),
    ) {
        let stream: String = lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}")).collect();
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < bytes.len()).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(all(&pieces), all(&[bytes]));
        prop_assert_eq!(all(&bytewise), all(&[bytes]));
        let plain = stream.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(all(&[plain.as_bytes()]), all(&[bytes]));
    }
}
