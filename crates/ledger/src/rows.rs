//! Read rows: what a list or a page shows, folded from the row operations of facts.

use std::collections::BTreeMap;

use abide_kernel::id::Seq;
use serde_json::{Map, Value};

use crate::commit::RowOp;
use crate::record::Row;

/// RFC 7396: an object patches member by member, `null` removes a member, anything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

/// The row after `patch`; `None` when the patch removes it.
pub(crate) fn patched(before: Option<Value>, patch: &Value) -> Option<Value> {
    if patch.is_null() {
        return None;
    }
    let mut value = before.unwrap_or(Value::Null);
    merge(&mut value, patch);
    Some(value)
}

/// The rows of one stream, by plane and id.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowTable {
    rows: BTreeMap<String, BTreeMap<String, (Seq, Value)>>,
}

impl RowTable {
    pub(crate) fn apply(&mut self, seq: Seq, op: &RowOp) {
        if !self.rows.contains_key(op.plane.as_ref()) {
            self.rows.insert(op.plane.to_string(), BTreeMap::new());
        }
        let Some(plane) = self.rows.get_mut(op.plane.as_ref()) else { return };
        if op.patch.is_null() {
            plane.remove(&op.id);
            return;
        }
        match plane.get_mut(&op.id) {
            Some((changed, value)) => {
                *changed = seq;
                merge(value, &op.patch);
            }
            None => {
                let mut value = Value::Null;
                merge(&mut value, &op.patch);
                plane.insert(op.id.clone(), (seq, value));
            }
        }
    }

    /// Rows of a plane by id, until `visit` says false.
    pub(crate) fn visit(&self, plane: &str, after: Option<&str>, visit: &mut dyn FnMut(Row) -> bool) {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.map_or(Unbounded, Excluded);
        let rows = self.rows.get(plane).into_iter().flat_map(|rows| rows.range::<str, _>((from, Unbounded)));
        for (id, (seq, value)) in rows {
            if !visit(Row { id: id.clone(), seq: *seq, value: value.clone() }) {
                break;
            }
        }
    }

    pub(crate) fn remove(&mut self, plane: &str, id: &str) -> Option<(Seq, Value)> {
        self.rows.get_mut(plane)?.remove(id)
    }

    /// Rows, by plane and id, that are not the same in both.
    pub(crate) fn differences(&self, other: &RowTable) -> Vec<(String, String)> {
        let here: BTreeMap<_, _> = self.iter().map(|(plane, id, seq, value)| ((plane, id), (seq, value))).collect();
        let there: BTreeMap<_, _> = other.iter().map(|(plane, id, seq, value)| ((plane, id), (seq, value))).collect();
        let changed = here.iter().filter(|(key, row)| there.get(*key) != Some(row));
        let missing = there.iter().filter(|(key, _)| !here.contains_key(*key));
        changed.chain(missing).map(|((plane, id), _)| ((*plane).to_owned(), (*id).to_owned())).collect()
    }

    /// Every row, by plane and id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str, Seq, &Value)> {
        self.rows.iter().flat_map(|(plane, rows)| {
            rows.iter().map(move |(id, (seq, value))| (plane.as_str(), id.as_str(), *seq, value))
        })
    }
}
