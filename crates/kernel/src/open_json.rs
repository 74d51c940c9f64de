//! JSON whose shape another party decides. Each kind has a type of its own, so that one is not taken for another; all of them
//! are stored as the JSON itself. Code that reads inside of one works on the value that it derefs to.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! open_json {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Value);

        impl $name {
            #[must_use]
            pub fn is_null(&self) -> bool {
                self.0.is_null()
            }
        }

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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl PartialEq<Value> for $name {
            fn eq(&self, other: &Value) -> bool {
                self.0 == *other
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
    /// The input of a tool call as the model wrote it. No tool need take it.
    ToolInput;
    /// The result of a tool call or of a person's act, as it is recorded and shown.
    ToolOutput;
}
