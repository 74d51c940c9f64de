//! Digests, and the chain that ties a stream's facts together.

use std::fmt;
use std::str::FromStr;

use abide_kernel::id::Seq;
use abide_kernel::time::Time;

/// 32 bytes of BLAKE3, written as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

/// A blob's name is the digest of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub Hash);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 digits of 0-9 and a-f")]
pub struct BadHash;

impl Hash {
    /// The predecessor of the first fact of a stream without a parent.
    pub const NONE: Hash = Hash([0; 32]);

    #[must_use]
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(*blake3::hash(bytes).as_bytes())
    }

    /// A digest over several fields: each is preceded by its length, so that no two lists of fields run together.
    #[must_use]
    pub(crate) fn of_fields(fields: &[&[u8]]) -> Hash {
        let mut hasher = blake3::Hasher::new();
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        Hash(*hasher.finalize().as_bytes())
    }

    /// The hash of the fact that follows `self`, with `self` as the key.
    ///
    /// It covers the payload's digest, not its bytes, so that a payload can be cut out and the chain still holds. It
    /// does not cover the stream's name, so that a fork can share its parent's prefix.
    #[must_use]
    pub fn then(&self, seq: Seq, at: Time, kind: &str, payload: &Hash) -> Hash {
        // Every fact read pays for this, by the block of 64 bytes. With the hash before as key and numbers no longer
        // than they need be, one block holds a kind of the usual length. Each number says where it ends, and the kind
        // ends with the input, so that no two facts are spelled alike.
        let mut buffer = [0u8; 32 + 2 * VARINT_MAX + 44];
        buffer[..32].copy_from_slice(&payload.0);
        let mut end = put_varint(&mut buffer, 32, seq);
        end = put_varint(&mut buffer, end, at.as_ms().cast_unsigned());
        let keyed = |bytes: &[u8]| Hash(*blake3::keyed_hash(&self.0, bytes).as_bytes());
        if let Some(room) = buffer.get_mut(end..end + kind.len()) {
            room.copy_from_slice(kind.as_bytes());
            return keyed(&buffer[..end + kind.len()]);
        }
        let mut long = buffer[..end].to_vec();
        long.extend_from_slice(kind.as_bytes());
        keyed(&long)
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Hash> {
        Some(Hash(bytes.try_into().ok()?))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = BadHash;

    fn from_str(text: &str) -> Result<Hash, BadHash> {
        from_hex(text).and_then(|bytes| Hash::from_slice(&bytes)).ok_or(BadHash)
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for BlobId {
    type Err = BadHash;

    fn from_str(text: &str) -> Result<BlobId, BadHash> {
        text.parse().map(BlobId)
    }
}

/// Of 64 bits, seven to the byte.
const VARINT_MAX: usize = 10;

/// Seven bits to the byte, the least first, the high bit set on all but the last. Returns where it ended.
fn put_varint(buffer: &mut [u8], mut at: usize, mut number: u64) -> usize {
    while number >= 0x80 {
        buffer[at] = (number & 0x7f) as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    buffer[at] = number as u8;
    at + 1
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
