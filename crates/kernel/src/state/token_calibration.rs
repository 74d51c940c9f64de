//! Calibration of token estimates: how far they were off from what the provider counted.

use serde::{Deserialize, Serialize};

/// Guesses against counts, of the model that answered last. Older ones fade.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCalibration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub estimated: u64,
    pub counted: u64,
}

impl TokenCalibration {
    /// A request that was thought to have so many tokens had so many.
    pub fn learn(&mut self, model: Option<&str>, estimated: u64, counted: u64) {
        if self.model.as_deref() != model {
            *self = TokenCalibration { model: model.map(str::to_owned), ..TokenCalibration::default() };
        }
        // A provider that counts nothing says nothing.
        if estimated == 0 || counted == 0 {
            return;
        }
        self.estimated = self.estimated - self.estimated / 4 + estimated;
        self.counted = self.counted - self.counted / 4 + counted;
    }

    /// A guess, corrected. However wrong the guesses were, by no more than four times.
    #[must_use]
    pub fn corrected(&self, tokens: u64) -> u64 {
        if self.estimated == 0 {
            return tokens;
        }
        let (low, high) = (tokens / 4, tokens.saturating_mul(4));
        let corrected = u128::from(tokens) * u128::from(self.counted) / u128::from(self.estimated);
        u64::try_from(corrected).unwrap_or(u64::MAX).clamp(low, high)
    }
}
