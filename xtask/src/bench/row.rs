//! One measurement: a JSON object on one line of a bench's stdout,
//! `{"name","value","unit","baseline","ratio","goal"}`, and whether its goal is met.

use anyhow::{Context, Result, bail};
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) unit: String,
    /// Measured in the same run; a goal on the value alone has none.
    pub(super) baseline: Option<f64>,
    pub(super) ratio: Option<f64>,
    pub(super) goal: Option<String>,
    /// None without a goal.
    pub(super) met: Option<bool>,
    /// As printed by the bench, with `met` added: what goes to the file.
    pub(super) json: Value,
}

impl Row {
    pub(super) fn parse(line: &str) -> Result<Row> {
        let mut json: Value = serde_json::from_str(line).context("not JSON")?;
        let text = |key: &str| json[key].as_str().map(str::to_owned).with_context(|| format!("{key} is not a string"));
        let optional = |key: &str| {
            let value = &json[key];
            if value.is_null() {
                Ok(None)
            } else {
                value.as_f64().map(Some).with_context(|| format!("{key} is not a number"))
            }
        };
        let name = text("name")?;
        let unit = text("unit")?;
        let value = optional("value")?.context("value is missing")?;
        let baseline = optional("baseline")?;
        let ratio = optional("ratio")?;
        let goal = if json["goal"].is_null() { None } else { Some(text("goal")?) };
        let met = goal.as_deref().map(|goal| meets(goal, value, ratio)).transpose()?;
        json["met"] = Value::from(met);
        Ok(Row { name, value, unit, baseline, ratio, goal, met, json })
    }
}

/// `>= 0.4` and `<= 1.2` speak of the ratio, `value >= 1000000` of the value.
fn meets(goal: &str, value: f64, ratio: Option<f64>) -> Result<bool> {
    let mut words: Vec<&str> = goal.split_whitespace().collect();
    let measured = if words.first() == Some(&"value") {
        words.remove(0);
        value
    } else {
        ratio.with_context(|| format!("goal {goal:?} speaks of a ratio and there is none"))?
    };
    let &[comparison, bound] = words.as_slice() else { bail!("goal {goal:?} is not like \">= 0.4\"") };
    let bound: f64 = bound.parse().with_context(|| format!("goal {goal:?} has no number"))?;
    match comparison {
        ">=" => Ok(measured >= bound),
        "<=" => Ok(measured <= bound),
        unknown => bail!("goal {goal:?} compares with {unknown:?}, which is neither >= nor <="),
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    fn judge(line: &str) -> String {
        match Row::parse(line) {
            Ok(row) => format!("{} {:?}", row.name, row.met),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn a_goal_speaks_of_the_ratio_or_of_the_value() {
        let cases = [
            (r#"{"name":"a","value":1,"unit":"ms","baseline":2,"ratio":0.5,"goal":">= 0.4"}"#, "a Some(true)"),
            (r#"{"name":"a","value":1,"unit":"ms","baseline":2,"ratio":0.3,"goal":">= 0.4"}"#, "a Some(false)"),
            (r#"{"name":"a","value":1,"unit":"ms","baseline":2,"ratio":1.2,"goal":"<= 1.2"}"#, "a Some(true)"),
            (
                r#"{"name":"a","value":9e5,"unit":"/s","baseline":null,"ratio":null,"goal":"value >= 1000000"}"#,
                "a Some(false)",
            ),
            (r#"{"name":"a","value":9,"unit":"/s"}"#, "a None"),
        ];
        for (line, expected) in cases {
            assert_eq!(judge(line), expected, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_judged_is_refused_with_the_field() {
        let cases = [
            (r#"{"value":9,"unit":"/s"}"#, "name is not a string"),
            (r#"{"name":"a","unit":"/s"}"#, "value is missing"),
            (r#"{"name":"a","value":"9","unit":"/s"}"#, "value is not a number"),
            (
                r#"{"name":"a","value":9,"unit":"/s","goal":">= 1"}"#,
                r#"goal ">= 1" speaks of a ratio and there is none"#,
            ),
            (
                r#"{"name":"a","value":9,"unit":"/s","ratio":1,"goal":"> 1"}"#,
                r#"goal "> 1" compares with ">", which is neither >= nor <="#,
            ),
            (r#"{"name":"a","value":9,"unit":"/s","ratio":1,"goal":"fast"}"#, r#"goal "fast" is not like ">= 0.4""#),
        ];
        for (line, expected) in cases {
            assert_eq!(judge(line), expected, "{line}");
        }
        assert!(judge("warming up").starts_with("not JSON"));
        assert_eq!(judge("[1]"), "name is not a string");
    }
}
