//! JSON whose shape another party decides. Each kind has a type of its own, so that one is not taken for another; all of them
//! are stored as the JSON itself. Code that reads inside of one works on the value that it derefs to.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! open_json {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Value);

        impl Deref for $name {
            type Target = Value;

            fn deref(&self) -> &Value {
                &self.0
            }
        }

        impl DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Value {
                &mut self.0
            }
        }

        impl From<Value> for $name {
            fn from(value: Value) -> $name {
                $name(value)
            }
        }
    )*};
}

open_json! {
    /// State that a provider wants back word for word: with its next call, or with the round that it came in.
    ProviderState;
    /// The JSON of a message.
    JsonBody;
}
