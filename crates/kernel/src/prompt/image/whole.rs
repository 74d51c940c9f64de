//! Whether bytes are an image from their beginning to their end, as far as can be told without drawing it: its header
//! makes sense, its parts follow each other, and its end is there. A file that was cut off in a download, or that only
//! begins like an image, would cost a whole request.
//!
//! Nothing is taken out of an image here but its size, and nothing of it is trusted: every length may lie.

use crate::limits::IMAGE_SIDE_PX;

/// The media type of an image that begins with these bytes, if it is one that models are shown.
#[must_use]
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    Kind::of(bytes).map(Kind::media_type)
}

/// The media type of a whole image; else what is wrong with it, as the end of a sentence about it.
pub fn whole(bytes: &[u8]) -> Result<&'static str, String> {
    let kind = Kind::of(bytes).ok_or("it is no PNG, JPEG, GIF or WebP")?;
    let size = match kind {
        Kind::Png => read_png(bytes),
        Kind::Jpeg => read_jpeg(bytes),
        Kind::Gif => read_gif(bytes),
        Kind::Webp => read_webp(bytes),
    };
    let name = kind.name();
    match size {
        Ok(Size { width, height }) if width == 0 || height == 0 => Err(format!("it is a {name} of {width} x {height}")),
        Ok(Size { width, height }) if width.max(height) > IMAGE_SIDE_PX => {
            Err(format!("it has {width} x {height} pixels, and {IMAGE_SIDE_PX} on a side are shown at most"))
        }
        Ok(_) => Ok(kind.media_type()),
        Err(Fault::CutOff) => Err(format!("it is a {name} that ends before its end")),
        Err(Fault::Wrong(what)) => Err(format!("it begins like a {name}, but {what}")),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl Kind {
    fn of(bytes: &[u8]) -> Option<Kind> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Kind::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Kind::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Kind::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Kind::Webp),
            _ => None,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Kind::Png => "image/png",
            Kind::Jpeg => "image/jpeg",
            Kind::Gif => "image/gif",
            Kind::Webp => "image/webp",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Png => "PNG",
            Kind::Jpeg => "JPEG",
            Kind::Gif => "GIF",
            Kind::Webp => "WebP",
        }
    }
}

struct Size {
    width: u32,
    height: u32,
}

enum Fault {
    CutOff,
    Wrong(&'static str),
}

/// Bytes that are taken one after the other.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Fault::CutOff)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn part(&mut self, bytes: usize) -> Result<Bytes<'a>, Fault> {
        let (part, rest) = self.0.split_at_checked(bytes).ok_or(Fault::CutOff)?;
        self.0 = rest;
        Ok(Bytes(part))
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let [byte] = self.take()?;
        Ok(byte)
    }
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Chunks: a length, a name, as many bytes, a checksum. The first is the header, the last is `IEND`.
fn read_png(bytes: &[u8]) -> Result<Size, Fault> {
    let mut bytes = Bytes(bytes);
    bytes.part(8)?;
    let (length, name): ([u8; 4], [u8; 4]) = (bytes.take()?, bytes.take()?);
    if &name != b"IHDR" || u32::from_be_bytes(length) != 13 {
        return Err(Fault::Wrong("has no header"));
    }
    let (width, height) = (u32::from_be_bytes(bytes.take()?), u32::from_be_bytes(bytes.take()?));
    let [depth, colour, compression, filter, interlace] = bytes.take()?;
    let depths: &[u8] = match colour {
        0 => &[1, 2, 4, 8, 16],
        3 => &[1, 2, 4, 8],
        2 | 4 | 6 => &[8, 16],
        _ => &[],
    };
    if !depths.contains(&depth) || compression != 0 || filter != 0 || interlace > 1 {
        return Err(Fault::Wrong("its header makes no sense"));
    }
    bytes.part(4)?;
    let mut drawn = false;
    loop {
        let length = u32::from_be_bytes(bytes.take()?);
        let name: [u8; 4] = bytes.take()?;
        bytes.part(to_usize(length))?;
        bytes.part(4)?;
        match &name {
            b"IDAT" => drawn |= length > 0,
            b"IEND" if drawn => return Ok(Size { width, height }),
            b"IEND" => return Err(Fault::Wrong("nothing is drawn in it")),
            _ => {}
        }
    }
}

/// Segments: a marker, and for most a length and as many bytes. The frame has the size; after it come scans and, where
/// it was not cut off, the marker of its end. What some cameras put behind that is nobody's business.
fn read_jpeg(bytes: &[u8]) -> Result<Size, Fault> {
    let mut bytes = Bytes(bytes);
    bytes.part(2)?;
    loop {
        if bytes.byte()? != 0xff {
            return Err(Fault::Wrong("its segments do not follow each other"));
        }
        let mut marker = bytes.byte()?;
        while marker == 0xff {
            marker = bytes.byte()?;
        }
        let length = match marker {
            0x01 | 0xd0..=0xd7 => continue,
            0xd9 | 0xda => return Err(Fault::Wrong("has no header")),
            0xc0..=0xfe => usize::from(u16::from_be_bytes(bytes.take()?)),
            _ => return Err(Fault::Wrong("its segments do not follow each other")),
        };
        let length = length.checked_sub(2).ok_or(Fault::Wrong("its segments do not follow each other"))?;
        let mut segment = bytes.part(length)?;
        // Tables and the like have numbers among those of frames.
        if !matches!(marker, 0xc0..=0xcf) || matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            continue;
        }
        segment.byte()?;
        let (height, width) = (u16::from_be_bytes(segment.take()?), u16::from_be_bytes(segment.take()?));
        let has = |marker: u8| bytes.0.windows(2).any(|pair| pair == [0xff, marker]);
        return match has(0xda) && has(0xd9) {
            true => Ok(Size { width: width.into(), height: height.into() }),
            false => Err(Fault::CutOff),
        };
    }
}

/// A screen, then blocks, of which one at least draws something, then a trailer.
fn read_gif(bytes: &[u8]) -> Result<Size, Fault> {
    let mut bytes = Bytes(bytes);
    bytes.part(6)?;
    let (width, height) = (u16::from_le_bytes(bytes.take()?), u16::from_le_bytes(bytes.take()?));
    let [packed, _background, _aspect] = bytes.take()?;
    colours(&mut bytes, packed)?;
    let mut drawn = false;
    loop {
        match bytes.byte()? {
            0x21 => {
                bytes.byte()?;
                blocks(&mut bytes)?;
            }
            0x2c => {
                bytes.part(8)?;
                let packed = bytes.byte()?;
                colours(&mut bytes, packed)?;
                bytes.byte()?;
                blocks(&mut bytes)?;
                drawn = true;
            }
            0x3b if drawn => return Ok(Size { width: width.into(), height: height.into() }),
            0x3b => return Err(Fault::Wrong("nothing is drawn in it")),
            _ => return Err(Fault::Wrong("its parts do not follow each other")),
        }
    }
}

/// A table of colours, where the flags before it say that there is one.
fn colours(bytes: &mut Bytes<'_>, packed: u8) -> Result<(), Fault> {
    if packed & 0x80 != 0 {
        bytes.part(3 << ((packed & 0x07) + 1))?;
    }
    Ok(())
}

/// Pieces of up to 255 bytes, until one that is empty.
fn blocks(bytes: &mut Bytes<'_>) -> Result<(), Fault> {
    loop {
        let length = bytes.byte()?;
        if length == 0 {
            return Ok(());
        }
        bytes.part(length.into())?;
    }
}

/// One RIFF chunk that has the others in it. The first of them says which of three kinds it is, and how large.
fn read_webp(bytes: &[u8]) -> Result<Size, Fault> {
    let mut file = Bytes(bytes);
    file.part(4)?;
    let mut bytes = {
        let length = u32::from_le_bytes(file.take()?);
        file.part(to_usize(length))?
    };
    bytes.part(4)?;
    let name: [u8; 4] = bytes.take()?;
    let length = u32::from_le_bytes(bytes.take()?);
    let mut chunk = bytes.part(to_usize(length))?;
    let (width, height) = match &name {
        b"VP8 " => {
            chunk.part(3)?;
            if chunk.take()? != [0x9d, 0x01, 0x2a] {
                return Err(Fault::Wrong("its header makes no sense"));
            }
            let side = |bytes| u32::from(u16::from_le_bytes(bytes) & 0x3fff);
            (side(chunk.take()?), side(chunk.take()?))
        }
        b"VP8L" => {
            if chunk.byte()? != 0x2f {
                return Err(Fault::Wrong("its header makes no sense"));
            }
            let packed = u32::from_le_bytes(chunk.take()?);
            ((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1)
        }
        b"VP8X" => {
            chunk.part(4)?;
            let side = |[a, b, c]: [u8; 3]| u32::from_le_bytes([a, b, c, 0]) + 1;
            let size = (side(chunk.take()?), side(chunk.take()?));
            // The pixels come in a chunk of their own.
            if bytes.0.is_empty() {
                return Err(Fault::CutOff);
            }
            size
        }
        _ => return Err(Fault::Wrong("has no header")),
    };
    Ok(Size { width, height })
}
