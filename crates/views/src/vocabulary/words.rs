//! The macro that declares a closed set of words.

/// Declares an enum whose variants have one spelling each, used by serde, `Display` and parsing alike.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal $(| $alias:literal)*),* $(,)? })*) => {
        /// Every set of words, by its name, with the spellings that are written.
        pub const WORDS: &[(&str, &[&str])] = &[$((stringify!($name), &[$($text),*])),*];

        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name { $($(#[$vdoc])* $variant),* }

            impl $name {
                pub const ALL: &'static [$name] = &[$($name::$variant),*];

                #[must_use]
                pub fn as_str(self) -> &'static str {
                    match self { $($name::$variant => $text),* }
                }

                /// The word behind a spelling; spellings that are only ever read count too.
                #[must_use]
                pub fn parse(text: &str) -> Option<$name> {
                    match text {
                        $($text $(| $alias)* => Some($name::$variant),)*
                        _ => None,
                    }
                }
            }

            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str(self.as_str())
                }
            }

            impl serde::Serialize for $name {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(self.as_str())
                }
            }

            impl<'de> serde::Deserialize<'de> for $name {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    struct Visitor;
                    impl serde::de::Visitor<'_> for Visitor {
                        type Value = $name;
                        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                            f.write_str(concat!("one of" $(, " ", $text)*))
                        }
                        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                            $name::parse(text)
                                .ok_or_else(|| E::unknown_variant(text, &[$($text),*]))
                        }
                    }
                    deserializer.deserialize_str(Visitor)
                }
            }
        )*
    };
}

pub(super) use words;
