//! Server-sent events, as far as we use them: names, data, ids and comments.

/// One event as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    pub name: String,
    pub id: Option<String>,
    pub data: String,
}

/// Puts events together from whatever pieces the wire delivers.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
}

impl SseParser {
    /// The events that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.take_line(&String::from_utf8_lossy(&line)));
                }
                // Lines may also end in CR LF; a lone CR we never write.
                b'\r' => {}
                byte => self.line.push(byte),
            }
        }
        events
    }

    fn take_line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_owned(),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            // A comment, or a field that we do not use.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_they_are_cut() {
        let wire = b": hello\n\nevent: turn.started\nid: 7\ndata: {\"a\":1}\n\ndata: x\r\ndata: y\r\n\r\n";
        let expected = vec![
            SseEvent { name: "turn.started".into(), id: Some("7".into()), data: "{\"a\":1}".into() },
            SseEvent { name: String::new(), id: None, data: "x\ny".into() },
        ];
        for cut in 0..wire.len() {
            let mut parser = SseParser::default();
            let mut events = parser.push(&wire[..cut]);
            events.extend(parser.push(&wire[cut..]));
            assert_eq!(events, expected, "cut at {cut}");
        }
    }
}
