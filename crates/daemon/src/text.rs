//! Numbers and commands as people read them.

/// With a comma between thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Millionths of a dollar in dollars, for display.
#[allow(clippy::cast_precision_loss, reason = "for display only; sums are kept in millionths")]
#[must_use]
pub fn dollars(micro: u64) -> f64 {
    micro as f64 / 1e6
}

/// The command that sets the price of a model.
#[must_use]
pub fn price_command(model: &str) -> String {
    format!("abide config set 'models.{model:?}.input_usd' USD 'models.{model:?}.output_usd' USD")
}
