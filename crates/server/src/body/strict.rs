//! JSON in which no object has a field twice: it would be unclear which of the two values is meant.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// JSON that was checked for repeated fields, at any depth. The values are dropped.
pub(super) struct UniqueFields;

impl<'de> Deserialize<'de> for UniqueFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UniqueFields, D::Error> {
        deserializer.deserialize_any(UniqueFields)
    }
}

impl<'de> Visitor<'de> for UniqueFields {
    type Value = UniqueFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<UniqueFields, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueFields, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueFields, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueFields, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueFields, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueFields, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueFields, A::Error> {
        while items.next_element::<UniqueFields>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<UniqueFields, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, UniqueFields)) = fields.next_entry::<String, UniqueFields>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format_args!("the field {name:?} is there twice")));
            }
            names.insert(name);
        }
        Ok(self)
    }
}
