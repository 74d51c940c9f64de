//! A trigger's URL is its own proof: it names the agent, the trigger and the generation, and is sealed with a key that
//! only this home has. There is no index to look it up in, and nothing to steal from the ledger.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use abide_kernel::id::{AgentId, TriggerId};
use abide_private::{read_regular, write_private};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::with_path;

const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
const UUID_BYTES: usize = 16;
const GENERATION_BYTES: usize = 4;
const TAG_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + UUID_BYTES + GENERATION_BYTES + TAG_BYTES;
/// The longest token: one of an agent whose name is as long as a name can be.
const TOKEN_MAX: usize = (HEAD_BYTES + 64).div_ceil(3) * 4;

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenTarget {
    pub agent: AgentId,
    pub trigger: TriggerId,
    pub generation: u32,
}

pub(super) struct Key {
    bytes: [u8; KEY_BYTES],
    path: PathBuf,
    /// Whether the key is in the home. It is put there with the first URL.
    kept: Mutex<bool>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Key {
    /// The home's key, or a new one where there is none yet. No token is valid with a new key.
    pub(super) fn read(home: &Path) -> io::Result<Key> {
        let path = home.join("hook.key");
        let (bytes, kept) = match read_regular(&path) {
            Ok(bytes) => {
                let wrong = |_| {
                    let text = format!(
                        "{} holds no key of {KEY_BYTES} bytes; restore it, or remove it and rotate every trigger",
                        path.display()
                    );
                    io::Error::new(ErrorKind::InvalidData, text)
                };
                (<[u8; KEY_BYTES]>::try_from(bytes).map_err(wrong)?, true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut bytes = [0; KEY_BYTES];
                fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
                (bytes, false)
            }
            Err(error) => return Err(with_path(&path, &error)),
        };
        Ok(Key { bytes, path, kept: Mutex::new(kept) })
    }

    /// The token of a trigger under a generation. None for an id that is no UUID.
    pub(super) fn token(&self, agent: &AgentId, trigger: &TriggerId, generation: u32) -> io::Result<Option<String>> {
        let Some(uuid) = uuid(trigger) else { return Ok(None) };
        self.store()?;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + agent.as_str().len());
        bytes.push(VERSION);
        bytes.extend(uuid);
        bytes.extend(generation.to_be_bytes());
        bytes.extend(self.tag(&uuid, generation, agent.as_str().as_bytes()));
        bytes.extend(agent.as_str().as_bytes());
        Ok(Some(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Decodes a token. Any invalid token costs one hash, and the reason is not told.
    pub(super) fn open_token(&self, token: &str) -> Option<TokenTarget> {
        let decoded = if token.len() > TOKEN_MAX { None } else { URL_SAFE_NO_PAD.decode(token).ok() };
        let read = decoded.as_deref().and_then(Parts::of);
        let parts = read.unwrap_or(Parts { uuid: [0; UUID_BYTES], generation: 0, tag: [0; TAG_BYTES], agent: b"-" });
        let right = constant_time_eq(&self.tag(&parts.uuid, parts.generation, parts.agent), &parts.tag);
        let agent = std::str::from_utf8(parts.agent).ok().and_then(|name| AgentId::new(name).ok());
        agent.filter(|_| right).map(|agent| TokenTarget {
            agent,
            trigger: trigger(&parts.uuid),
            generation: parts.generation,
        })
    }

    /// The name comes last and everything before it has its length, so no two triggers are sealed alike.
    fn tag(&self, uuid: &[u8; UUID_BYTES], generation: u32, agent: &[u8]) -> [u8; TAG_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.bytes);
        hasher.update(&[VERSION]).update(uuid).update(&generation.to_be_bytes()).update(agent);
        let mut tag = [0; TAG_BYTES];
        hasher.finalize_xof().fill(&mut tag);
        tag
    }

    /// Written beside and moved into place: half a key would close every URL for good.
    fn store(&self) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !*kept {
            write_private(&self.path, &self.bytes).map_err(|error| with_path(&self.path, &error))?;
            *kept = true;
        }
        Ok(())
    }
}

struct Parts<'a> {
    uuid: [u8; UUID_BYTES],
    generation: u32,
    tag: [u8; TAG_BYTES],
    agent: &'a [u8],
}

impl Parts<'_> {
    fn of(bytes: &[u8]) -> Option<Parts<'_>> {
        let (version, rest) = bytes.split_first()?;
        let (uuid, rest) = rest.split_first_chunk::<UUID_BYTES>()?;
        let (generation, rest) = rest.split_first_chunk::<GENERATION_BYTES>()?;
        let (tag, agent) = rest.split_first_chunk::<TAG_BYTES>()?;
        let generation = u32::from_be_bytes(*generation);
        (*version == VERSION).then_some(Parts { uuid: *uuid, generation, tag: *tag, agent })
    }
}

/// In a time that does not depend on where they differ: hashes are compared so.
fn constant_time_eq(one: &[u8; TAG_BYTES], other: &[u8; TAG_BYTES]) -> bool {
    let whole = |tag: &[u8; TAG_BYTES]| {
        let mut bytes = [0; 32];
        bytes[..TAG_BYTES].copy_from_slice(tag);
        blake3::Hash::from_bytes(bytes)
    };
    whole(one) == whole(other)
}

fn uuid(trigger: &TriggerId) -> Option<[u8; UUID_BYTES]> {
    let text = trigger.as_str().strip_prefix("trig_")?;
    let hex: String = text.split('-').collect();
    let number = u128::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == 2 * UUID_BYTES)?;
    let bytes = number.to_be_bytes();
    // Only the one spelling that the token can be turned back into.
    (self::trigger(&bytes) == *trigger).then_some(bytes)
}

fn trigger(uuid: &[u8; UUID_BYTES]) -> TriggerId {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    TriggerId::new(format!("trig_{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn agent() -> AgentId {
        AgentId::new("build.watcher").unwrap()
    }

    fn id() -> TriggerId {
        TriggerId::new("trig_019b76da-a800-7000-8000-0000000000ab")
    }

    #[test]
    fn a_token_opens_what_it_was_made_for_also_after_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let token = Key::read(home.path()).unwrap().token(&agent(), &id(), 7).unwrap().unwrap();
        let again = Key::read(home.path()).unwrap();
        assert_eq!(again.open_token(&token), Some(TokenTarget { agent: agent(), trigger: id(), generation: 7 }));
        let mode = fs::metadata(home.path().join("hook.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn no_byte_of_a_token_can_be_changed() {
        let home = tempfile::tempdir().unwrap();
        let key = Key::read(home.path()).unwrap();
        let token = key.token(&agent(), &id(), 0).unwrap().unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for index in 0..bytes.len() {
            let mut other = bytes.clone();
            other[index] ^= 1;
            assert_eq!(key.open_token(&URL_SAFE_NO_PAD.encode(other)), None, "byte {index}");
        }
        for cut in 0..bytes.len() {
            assert_eq!(key.open_token(&URL_SAFE_NO_PAD.encode(&bytes[..cut])), None, "cut at {cut}");
        }
        for wrong in ["", "x", "....", &format!("{token}="), &format!("{token}AAAA"), &"A".repeat(10_000)] {
            assert_eq!(key.open_token(wrong), None, "{wrong:.20}");
        }
    }

    #[test]
    fn another_homes_token_opens_nothing() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let token = Key::read(one.path()).unwrap().token(&agent(), &id(), 0).unwrap().unwrap();
        assert_eq!(Key::read(other.path()).unwrap().open_token(&token), None);
    }

    #[test]
    fn an_id_that_is_not_ours_has_no_url() {
        let home = tempfile::tempdir().unwrap();
        let key = Key::read(home.path()).unwrap();
        for foreign in
            ["hook-1", "trig_1", "trig_019B76DA-A800-7000-8000-0000000000AB", "trig_+19b76daa80070008000000000000000ab"]
        {
            assert_eq!(key.token(&agent(), &TriggerId::new(foreign), 0).unwrap(), None, "{foreign}");
        }
        assert!(!home.path().join("hook.key").exists(), "no URL was made");
    }

    #[test]
    fn half_a_key_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("hook.key"), b"short").unwrap();
        assert_eq!(Key::read(home.path()).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
