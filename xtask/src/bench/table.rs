//! The rows as an aligned table: words to the left, numbers to the right.

use super::row::Row;

const HEAD: [&str; 7] = ["name", "value", "unit", "baseline", "ratio", "goal", "met"];
const NUMBERS: [bool; 7] = [false, true, false, true, true, false, false];

pub(super) fn render(rows: &[Row]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let mut widths = [0; HEAD.len()];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }

    let mut table = String::new();
    for line in &lines {
        let mut text = String::new();
        for ((cell, width), number) in line.iter().zip(widths).zip(NUMBERS) {
            text += &if number { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
        }
        table.push_str(text.trim_end());
        table.push('\n');
    }
    table
}

fn cells(row: &Row) -> [String; 7] {
    let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    [
        row.name.clone(),
        figure(row.value),
        row.unit.clone(),
        or_dash(row.baseline.map(figure)),
        or_dash(row.ratio.map(|ratio| format!("{ratio:.2}"))),
        or_dash(row.goal.clone()),
        match row.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        }
        .to_owned(),
    ]
}

/// Whole numbers with thousands apart from a hundred on, below that three digits that count.
fn figure(number: f64) -> String {
    if number.abs() < 100.0 {
        let decimals = if number.abs() < 1.0 { 3 } else { 2 };
        return format!("{number:.decimals$}");
    }
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::{Row, render};

    #[test]
    fn the_table_is_aligned() {
        let rows = [
            r#"{"name":"ledger.append","value":101234.6,"unit":"facts/s","baseline":202469,"ratio":0.5,"goal":">= 0.4"}"#,
            r#"{"name":"ledger.replay","value":1234567,"unit":"facts/s","goal":"value >= 2000000"}"#,
            r#"{"name":"x","value":0.5,"unit":"ms"}"#,
        ]
        .map(|line| Row::parse(line).unwrap());
        let expected = "\
name               value  unit     baseline  ratio  goal              met
ledger.append    101,235  facts/s   202,469   0.50  >= 0.4            yes
ledger.replay  1,234,567  facts/s         -      -  value >= 2000000  NO
x                  0.500  ms              -      -  -                 -
";
        assert_eq!(render(&rows), expected);
    }
}
