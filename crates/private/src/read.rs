//! Reading files that a person or an earlier run put there: settings, keys, notes. A pipe, a device or a socket in place
//! of one is refused before it is opened, because opening or reading it may take for ever.

use std::fs::{File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The whole content of a regular file. A link to one is as good.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    require_regular(&std::fs::metadata(path)?)?;
    let mut file = File::open(path)?;
    // Another one may be at its path by now.
    require_regular(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The same, of a file that holds text.
pub fn read_regular_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_regular(path)?);
    text.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Reads the whole content of an open file, if it is a regular one of at most so many bytes. It is for files that an agent
/// can write: their reader must neither follow a link nor wait for a pipe.
pub fn read_open_regular(file: &File, most_bytes: u64) -> io::Result<Vec<u8>> {
    require_regular(&file.metadata()?)?;
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most_bytes} bytes")));
    }
    Ok(bytes)
}

fn require_regular(found: &Metadata) -> io::Result<()> {
    match kind(found.file_type()) {
        None => Ok(()),
        Some(kind) => {
            let why = format!("it is {kind}, and only a regular file is read");
            Err(io::Error::new(ErrorKind::InvalidInput, why))
        }
    }
}

/// None for a regular file.
fn kind(found: FileType) -> Option<&'static str> {
    let kinds = [
        (found.is_dir(), "a folder"),
        (found.is_fifo(), "a pipe"),
        (found.is_socket(), "a socket"),
        (found.is_block_device() || found.is_char_device(), "a device"),
    ];
    let kind = kinds.iter().find(|(is, _)| *is).map_or("something else", |(_, kind)| *kind);
    (!found.is_file()).then_some(kind)
}
