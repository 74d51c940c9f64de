use std::io::Read;
use std::process::Command;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A umask belongs to a whole process, so the test runs itself again in one that has another.
#[test]
fn modes_do_not_depend_on_the_umask() {
    if let Some(folder) = std::env::var_os("PRIVATE_FILES_UNDER_TEST") {
        return make_all(Path::new(&folder));
    }
    for umask in ["000", "022", "777"] {
        let folder = tempfile::tempdir().unwrap();
        let run = Command::new("sh")
            .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "tests::modes_do_not_depend_on_the_umask"])
            .env("PRIVATE_FILES_UNDER_TEST", folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "umask {umask}: {}", String::from_utf8_lossy(&run.stdout));
        for made in ["a", "a/b"] {
            assert_eq!(mode(&folder.path().join(made)), 0o700, "{made} with umask {umask}");
        }
        for made in ["emptied", "appended", "kept", "new", "written"] {
            assert_eq!(mode(&folder.path().join("a/b").join(made)), 0o600, "{made} with umask {umask}");
        }
    }
}

fn make_all(folder: &Path) {
    let folder = folder.join("a/b");
    private_folder(&folder).unwrap();
    private_file(&folder.join("emptied")).unwrap();
    open_private(&folder.join("appended"), Existing::Append).unwrap();
    open_private(&folder.join("kept"), Existing::Keep).unwrap();
    open_private(&folder.join("new"), Existing::Refuse).unwrap();
    write_private(&folder.join("written"), b"whole").unwrap();
}

#[test]
fn what_is_there_already_is_closed_to_others_and_keeps_its_content_where_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (inner, file) = (folder.path().join("inner"), folder.path().join("inner/file"));
    fs::create_dir(&inner).unwrap();
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&inner, Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    private_folder(&inner).unwrap();
    assert_eq!(mode(&inner), 0o700);
    let mut text = String::new();
    open_private(&file, Existing::Keep).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), mode(&file)), ("old", 0o600));
    open_private(&file, Existing::Append).unwrap().write_all(b" and new").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old and new");
    let refused = open_private(&file, Existing::Refuse).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    private_file(&file).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    write_private(&file, b"whole").unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("whole", 0o600));
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_folder_is_not_made_where_a_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "here").unwrap();
    assert!(private_folder(&file).is_err());
    assert!(private_folder(&file.join("below")).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "here");
}

#[test]
fn only_a_new_folder_is_closed_without_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty, full) =
        (folder.path().join("a/missing"), folder.path().join("empty"), folder.path().join("full"));
    for shared in [&empty, &full] {
        fs::create_dir(shared).unwrap();
        fs::set_permissions(shared, Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(full.join("file"), "of somebody").unwrap();
    let modes = [&missing, &empty, &full].map(|folder| {
        private_if_new(folder).unwrap();
        mode(folder)
    });
    assert_eq!(modes, [0o700, 0o700, 0o755]);
    assert!(private_if_new(&full.join("file")).is_err());
}

#[test]
fn an_open_file_is_read_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "four").unwrap();
    let read = |path: &Path, most| read_open_regular(&fs::File::open(path).unwrap(), most);
    assert_eq!(read(&file, 4).unwrap(), b"four");
    assert_eq!(read(&file, 3).unwrap_err().to_string(), "it has more than 3 bytes");
    assert_eq!(read(folder.path(), 4).unwrap_err().to_string(), "it is a folder, and only a regular file is read");
}
