//! Reading fields of requests without a second guess.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A number as the document has it, which is a signed one of 64 bits: what lies beyond, half of all readers would take
/// for another number.
pub fn within_int64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(deserializer)?;
    match number.filter(|number| i64::try_from(*number).is_err()) {
        Some(number) => Err(serde::de::Error::custom(format!("{number} is too large, the most is {}", i64::MAX))),
        None => Ok(number),
    }
}

/// An object, and nothing that could pass for one: left to itself, serde takes a list of the fields' values as well.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    struct Object<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_none<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }

        fn visit_unit<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
            deserializer.deserialize_map(self)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_option(Object(PhantomData))
}
