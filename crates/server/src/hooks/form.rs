//! Forms as browsers and scripts post them. An invalid form is refused, not guessed at.

use std::collections::BTreeMap;

use serde::Serialize;

/// The fields of a form by their names.
pub(super) type Fields = BTreeMap<String, Field>;

/// The value of a field. One that is repeated is a list in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Field {
    Single(String),
    Repeated(Vec<String>),
}

pub(super) fn parse(body: &[u8]) -> Result<Fields, &'static str> {
    let mut fields = Fields::new();
    for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let middle = pair.iter().position(|byte| *byte == b'=').ok_or("a part of it has no `=`")?;
        let name = text(&pair[..middle])?;
        let value = text(&pair[middle + 1..])?;
        match fields.get_mut(&name) {
            None => {
                fields.insert(name, Field::Single(value));
            }
            Some(Field::Repeated(values)) => values.push(value),
            Some(field @ Field::Single(_)) => {
                if let Field::Single(first) = std::mem::replace(field, Field::Repeated(Vec::new())) {
                    *field = Field::Repeated(vec![first, value]);
                }
            }
        }
    }
    Ok(fields)
}

fn text(encoded: &[u8]) -> Result<String, &'static str> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => u8::try_from(high << 4 | low).unwrap_or_default(),
                (_, _) => return Err("a `%` in it is not followed by two hexadecimal digits"),
            },
            byte => *byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_decoded_and_repeated_ones_are_lists() {
        let fields = parse(b"a=1&b=x+y%20z&a=2&%C3%A9=&&a=3").unwrap();
        assert_eq!(json!(fields), json!({ "a": ["1", "2", "3"], "b": "x y z", "é": "" }));
        assert_eq!(parse(b"").unwrap(), Fields::new());
    }

    #[test]
    fn what_does_not_read_is_refused() {
        for wrong in [b"a".as_slice(), b"a=%", b"a=%2", b"a=%zz", b"a=%ff", b"\xff=1", b"a=1&b"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
