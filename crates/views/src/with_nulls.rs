//! A view with its absent fields spelled out. The results of tools and the summary of an agent have always said `null` where
//! lists leave a field out, and results of tools are recorded: so one view is written in both ways.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// Serialises as what is in it, except that a field it leaves out is null, on every level.
#[derive(Debug, Clone, Copy)]
pub struct WithNulls<'a, T: ?Sized>(pub &'a T);

/// Fields that only some records of a kind have. They are left out here, too.
const LEFT_OUT: &[&str] = &[
    "copy_of",
    "cron",
    "deprecated",
    "disk_bytes",
    "error",
    "held_by",
    "makers",
    "message_id",
    "missing",
    "parent",
    "rule_folders",
    "supervisor",
    "task_id",
    "time_zone",
    "timer_id",
    "upcoming",
    "url",
    "used_at",
    "waiting_intent_id",
    "waiting_reason",
    "warning",
    "work_item_id",
];

impl<T: Serialize + ?Sized> Serialize for WithNulls<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Filling(serializer))
    }
}

/// Hands everything on, and writes null in the place of a field that is skipped.
struct Filling<S>(S);

macro_rules! handed_on {
    ($($method:ident: $value:ty,)*) => {
        $(fn $method(self, value: $value) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
        })*
    };
}

impl<S: Serializer> Serializer for Filling<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Filling<S::SerializeSeq>;
    type SerializeTuple = Filling<S::SerializeTuple>;
    type SerializeTupleStruct = Filling<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Filling<S::SerializeTupleVariant>;
    type SerializeMap = Filling<S::SerializeMap>;
    type SerializeStruct = Filling<S::SerializeStruct>;
    type SerializeStructVariant = Filling<S::SerializeStructVariant>;

    handed_on! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&WithNulls(value))
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_unit_variant(self, name: &'static str, at: u32, variant: &'static str) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, at, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &WithNulls(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, at, variant, &WithNulls(value))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Filling)
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Filling)
    }

    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Filling)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0.serialize_tuple_variant(name, at, variant, len).map(Filling)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Filling)
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        // The length counts what is not skipped, and a writer of JSON closes what has none.
        self.0.serialize_struct(name, len.max(1)).map(Filling)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        at: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0.serialize_struct_variant(name, at, variant, len.max(1)).map(Filling)
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! elements {
    ($($sequence:ident $method:ident,)*) => {$(
        impl<C: $sequence> $sequence for Filling<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                self.0.$method(&WithNulls(value))
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.0.end()
            }
        }
    )*};
}

elements! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

impl<C: SerializeMap> SerializeMap for Filling<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.0.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        self.0.serialize_value(&WithNulls(value))
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.0.end()
    }
}

macro_rules! fields {
    ($($structure:ident)*) => {$(
        impl<C: $structure> $structure for Filling<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), C::Error> {
                self.0.serialize_field(key, &WithNulls(value))
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), C::Error> {
                if LEFT_OUT.contains(&key) { self.0.skip_field(key) } else { self.0.serialize_field(key, &()) }
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.0.end()
            }
        }
    )*};
}

fields! { SerializeStruct SerializeStructVariant }

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::budget::{BudgetView, LimitsView};

    #[test]
    fn what_is_left_out_is_null_on_every_level() {
        let daily = Some(LimitsView { max_turns: Some(3), ..LimitsView::default() });
        let budget = BudgetView { max_tokens: Some(9), daily, ..BudgetView::default() };
        assert_eq!(json!(budget), json!({ "max_tokens": 9, "daily": { "max_turns": 3 } }));
        let daily = json!({ "max_turns": 3, "max_tokens": null, "max_usd": null, "max_wall_ms": null });
        let expected =
            json!({ "max_turns": null, "max_tokens": 9, "max_usd": null, "max_wall_ms": null, "daily": daily });
        assert_eq!(json!(WithNulls(&budget)), expected);
        assert_eq!(json!(WithNulls(&[Some(budget), None])), json!([expected, null]));
        let text = serde_json::to_string(&WithNulls(&LimitsView::default())).unwrap();
        assert_eq!(text, r#"{"max_turns":null,"max_tokens":null,"max_usd":null,"max_wall_ms":null}"#);
    }
}
