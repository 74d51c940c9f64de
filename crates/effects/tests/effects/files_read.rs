//! ReadFile: lines, bounds, and files that are none.

use std::io::{Seek, SeekFrom, Write};

use abide_effects::files::Root;
use abide_effects::{files, limits};
use base64::prelude::{BASE64_STANDARD, Engine};
use proptest::prelude::*;
use serde_json::json;

use crate::calls::file_call;
use crate::files_stage::Workspace;
use abide_kernel::refusal::ErrorCode;

#[test]
fn lines_are_counted_from_one_and_may_be_asked_for() {
    let workspace = Workspace::new();
    workspace.put("a", "one\ntwo\nthree\nfour");
    let read = |input| workspace.does("ReadFile", input);
    assert_eq!(
        read(json!({ "path": "a" })),
        json!({ "content": "one\ntwo\nthree\nfour", "lines": 4, "truncated": false })
    );
    assert_eq!(
        read(json!({ "path": "./a", "offset": 2, "limit": 2 })),
        json!({ "content": "two\nthree\n", "lines": 4, "truncated": true, "next_offset": 4 })
    );
    assert_eq!(read(json!({ "path": "a", "offset": 4 })), json!({ "content": "four", "lines": 4, "truncated": false }));
    assert_eq!(read(json!({ "path": "a", "offset": 0, "limit": 1 }))["content"], "one\n");
    let refusal = workspace.refuses("ReadFile", json!({ "path": "a", "offset": 5 }), "past_the_end");
    assert_eq!(refusal.message, "a has 4 lines; line 5 is past its end");
    workspace.put("empty", "");
    assert_eq!(read(json!({ "path": "empty" })), json!({ "content": "", "lines": 0, "truncated": false }));
    workspace.put("crlf", "a\r\nb\r\n");
    assert_eq!(read(json!({ "path": "crlf" }))["content"], "a\r\nb\r\n");
}

#[test]
fn long_lines_and_long_files_are_clipped_and_say_so() {
    let workspace = Workspace::new();
    workspace.put("line", format!("first\n{}\nlast\n", "é".repeat(500_000)));
    let result = workspace.does("ReadFile", json!({ "path": "line" }));
    let content = result["content"].as_str().unwrap();
    assert!(content.starts_with("first\né") && content.ends_with("é\nlast\n") && content.len() < 20_000);
    assert_eq!((&result["lines"], &result["truncated"]), (&json!(3), &json!(true)));
    assert!(result["note"].as_str().unwrap().contains("line 2 is clipped"), "{}", result["note"]);

    // A character across the end of what is read at once, and the cut through another.
    let before = (128 << 10) - 1001;
    workspace.put("split", format!("{}\n{}\n", "x".repeat(before), "é".repeat(20_000)));
    let result = workspace.does("ReadFile", json!({ "path": "split", "offset": 2 }));
    assert!(!result["content"].as_str().unwrap().contains('\u{fffd}'), "{}", result["note"]);

    workspace.put("many", "0123456789\n".repeat(100_000));
    let result = workspace.does("ReadFile", json!({ "path": "many", "limit": 20_000 }));
    assert!(result["content"].as_str().unwrap().len() <= limits::READ_BYTES);
    assert_eq!((&result["lines"], &result["truncated"]), (&json!(100_000), &json!(true)));
    // What is left is had by going on where it says.
    let (mut at, mut whole) = (1, String::new());
    loop {
        let result = workspace.does("ReadFile", json!({ "path": "many", "offset": at, "limit": 20_000 }));
        whole += result["content"].as_str().unwrap();
        match result["next_offset"].as_u64() {
            Some(next) => at = next,
            None => break,
        }
    }
    assert_eq!(whole, workspace.text("many"));
}

#[test]
fn a_huge_file_is_not_read_to_the_end() {
    let workspace = Workspace::new();
    workspace.put("huge", "one\ntwo\n");
    let mut file = std::fs::OpenOptions::new().append(true).open(workspace.path("huge")).unwrap();
    file.set_len(10 << 30).unwrap();
    // A hole is read as zeroes: it is no text where one looks at it, but what is before it is.
    let refusal = workspace.refuses("ReadFile", json!({ "path": "huge" }), "binary_file");
    assert!(refusal.hint.contains("ExecCommand"));
    file.set_len(0).unwrap();
    file.write_all("line\n".repeat(30_000).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.set_len(10 << 30).unwrap();
    let result = workspace.does("ReadFile", json!({ "path": "huge", "limit": 2 }));
    assert_eq!(result, json!({ "content": "line\nline\n", "lines": null, "truncated": true, "next_offset": 3 }));
    workspace.refuses("ReadFile", json!({ "path": "huge", "offset": 40_000 }), "too_large");
}

#[test]
fn bytes_that_are_no_text_are_refused_or_marked() {
    let workspace = Workspace::new();
    workspace.put("binary", b"\x7fELF\0\0\0");
    workspace.refuses("ReadFile", json!({ "path": "binary" }), "binary_file");
    workspace.put("utf16", b"\xff\xfea\0b\0");
    assert!(workspace.refuses("ReadFile", json!({ "path": "utf16" }), "binary_file").hint.contains("iconv"));
    workspace.put("latin1", b"caf\xe9\n");
    let result = workspace.does("ReadFile", json!({ "path": "latin1" }));
    assert_eq!(result["content"], "caf\u{fffd}\n");
    assert!(result["note"].as_str().unwrap().contains("not UTF-8"));
}

#[test]
fn what_is_no_file_is_refused_and_nothing_hangs() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("folder")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(workspace.path("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(workspace.path("socket")).unwrap();
    for (name, code) in [
        ("folder", "is_a_folder"),
        (".", "is_a_folder"),
        ("folder/..", "is_a_folder"),
        ("pipe", "not_a_file"),
        ("socket", "not_a_file"),
        ("nothing", "not_found"),
        ("pipe/x", "not_a_folder"),
    ] {
        workspace.refuses("ReadFile", json!({ "path": name }), code);
        workspace.refuses("EditFile", json!({ "path": name, "old": "a", "new": "b" }), code);
        if code != "not_found" {
            workspace.refuses("WriteFile", json!({ "path": name, "content": "b" }), code);
        }
    }
    let call = |folder: &str, path: &str| {
        let call = file_call("ReadFile", &json!({ "path": path })).unwrap();
        files::run(&call, &Root::open(folder.as_ref()).unwrap()).unwrap_err()
    };
    assert_eq!(call("/dev", "null").code, ErrorCode::NotAFile);
    assert_eq!(call(&format!("/proc/{}", std::process::id()), "status").code, ErrorCode::NotAFile);
}

#[test]
fn a_name_that_is_near_is_named() {
    let workspace = Workspace::new();
    workspace.put("src/main.rs", "");
    for wrong in ["src/mian.rs", "scr/main.rs", "src/Main.rs"] {
        let refusal = workspace.refuses("ReadFile", json!({ "path": wrong }), "not_found");
        assert!(refusal.hint.starts_with("did you mean src/main.rs?"), "{refusal:?}");
    }
    let refusal = Root::open(&workspace.path("none")).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Missing);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_add_up_to_the_file(text in "([a-zé]{0,6}\r?\n?){0,40}", limit in 1_u64..7) {
        let workspace = Workspace::new();
        workspace.put("a", &text);
        let (mut at, mut whole) = (1, String::new());
        loop {
            let result = workspace.does("ReadFile", json!({ "path": "a", "offset": at, "limit": limit }));
            prop_assert_eq!(result["lines"].as_u64().unwrap(), text.split_inclusive('\n').count() as u64);
            whole += result["content"].as_str().unwrap();
            prop_assert_eq!(result["truncated"].as_bool().unwrap(), result.get("next_offset").is_some());
            match result["next_offset"].as_u64() {
                Some(next) => at = next,
                None => break,
            }
        }
        prop_assert_eq!(whole, text);
    }
}

/// A whole PNG of so many bytes.
fn png(bytes: usize) -> Vec<u8> {
    let chunk = |name: &[u8; 4], data: &[u8]| {
        [&u32::try_from(data.len()).unwrap().to_be_bytes()[..], name, data, &[0; 4]].concat()
    };
    let header = chunk(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 1, 8, 2, 0, 0, 0]);
    let (drawn, end) = (chunk(b"IDAT", &[7]), chunk(b"IEND", &[]));
    let filler = chunk(b"fiLl", &vec![7; bytes - 70]);
    [b"\x89PNG\r\n\x1a\n", &header[..], &filler, &drawn, &end].concat()
}

#[test]
fn an_image_is_shown_as_one() {
    let workspace = Workspace::new();
    let read = |name: &str| workspace.does("ReadFile", json!({ "path": name }));
    // By what it is, not by its name.
    workspace.put("notes.txt", png(72));
    let image = json!({ "media_type": "image/png", "data": BASE64_STANDARD.encode(png(72)) });
    assert_eq!(read("notes.txt"), json!({ "image": image, "content": "", "lines": 0, "truncated": false }));
    let gif = BASE64_STANDARD.decode("R0lGODdhAgABAIEAAP8AAAAAAAAAAAAAACwAAAAAAgABAAAIBQABAAgIADs=").unwrap();
    let webp = BASE64_STANDARD.decode("UklGRhwAAABXRUJQVlA4TA8AAAAvAQAAAAcQ/Y/+ByKi/wEA").unwrap();
    for (image, kind) in [(&gif, "image/gif"), (&webp, "image/webp")] {
        workspace.put("image", image);
        assert_eq!(read("image")["image"]["media_type"], kind);
    }
    // One that is none after all would spoil the request that it is in, and all after that.
    for image in [&png(200)[..150], b"\xff\xd8\xff\xe0\0\x10", &gif[..40]] {
        workspace.put("image", image);
        let refusal = workspace.refuses("ReadFile", json!({ "path": "image" }), "unreadable_image");
        assert!(refusal.message.starts_with("image is an image that can't be shown: it is a "), "{refusal:?}");
    }
    workspace.put("text.png", "GIF89a is how such files begin\n");
    assert_eq!(read("text.png")["content"], "GIF89a is how such files begin\n");
    workspace.put("other", b"BM\0\0");
    workspace.refuses("ReadFile", json!({ "path": "other" }), "binary_file");
}

#[test]
fn a_large_image_is_refused_with_a_way_to_make_it_smaller() {
    let workspace = Workspace::new();
    let most = abide_kernel::limits::IMAGE_BYTES;
    workspace.put("fits.png", png(most));
    let shown = workspace.does("ReadFile", json!({ "path": "fits.png" }));
    // What is shown is what a model's prompt takes for an image.
    let (images, left) = abide_kernel::prompt::image::images_in(&shown);
    assert_eq!((images.len(), &left["image"]), (1, &json!("(image 1)")));
    workspace.put("large.png", png(most + 1));
    let refusal = workspace.refuses("ReadFile", json!({ "path": "large.png" }), "too_large");
    assert_eq!(refusal.message, "large.png is an image of 1048577 bytes; one is shown up to 1048576");
    assert!(refusal.hint.contains("-resize"), "{refusal:?}");
}
