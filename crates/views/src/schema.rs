//! Schemas of what is written as a string: ids and times, and words with the list of them.

macro_rules! string_schema {
    ($name:ident) => {
        $crate::schema::string_schema!(@ $name, utoipa::openapi::schema::Object::with_type(utoipa::openapi::schema::Type::String));
    };
    ($name:ident, [$($text:literal),*]) => {
        $crate::schema::string_schema!(
            @ $name,
            utoipa::openapi::schema::ObjectBuilder::new()
                .schema_type(utoipa::openapi::schema::Type::String)
                .enum_values(Some([$($text),*]))
                .build()
        );
    };
    (@ $name:ident, $schema:expr) => {
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $schema.into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}

pub(crate) use string_schema;
