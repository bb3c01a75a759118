//! What a chat shows of a turn.

use super::{
    show, text,
    waiting::{among, choices},
};
use crate::cli;
use serde_json::Value;

/// What is on the screen.
#[derive(Default)]
pub(super) struct Shown {
    /// Who is in the middle of a line.
    speaking: Option<String>,
}

impl Shown {
    /// Shows an event. Answers whether the turn was answered, where this is its end.
    pub(super) fn show(&mut self, event: &Value) -> anyhow::Result<Option<bool>> {
        let agent = text(event, "agent");
        match text(event, "type") {
            "text" => {
                if self.speaking.as_deref() != Some(agent) {
                    self.end_line()?;
                    if agent != "Rover" {
                        show(&format!("  {agent}: "))?;
                    }
                    self.speaking = Some(agent.to_owned());
                }
                show(&cli::harmless(text(event, "delta")))?;
            }
            "delegated" => self.line(&format!("  → {agent}: {}", text(event, "task")))?,
            "tool_ended" => {
                let tool = text(event, "tool");
                let how = event.get("error").map_or("done", |_| "refused or failed");
                let covers = event.get("scopeContext").or(event.get("error")).and_then(Value::as_str);
                self.line(&format!("  · {agent} {tool}: {how}. {}", covers.unwrap_or_default()))?;
            }
            "asked" => {
                let among = among(&choices(event));
                self.line(&format!("  {agent} asks: {}{among}", text(event, "question")))?;
            }
            "approval_asked" => {
                let preview = event.get("preview").unwrap_or(&Value::Null);
                self.line(&format!("  {agent} would {}: {preview}", text(event, "tool")))?;
            }
            "waiting" => self.end_line()?,
            "decided" => match text(event, "decision") {
                "approved" => {}
                "asked_anew" => self.line("  By now it would do something else, and is asked about anew.")?,
                "replaced" => self.line("  Other arguments took its place, and are asked about.")?,
                how => self.line(&format!("  It was decided: {how}."))?,
            },
            "ended" => {
                self.end_line()?;
                let outcome = event.get("outcome").unwrap_or(&Value::Null);
                let answered = outcome.get("answer").is_some();
                if !answered {
                    let why = outcome
                        .get("error")
                        .or(outcome.get("cancelled"))
                        .and_then(Value::as_str);
                    self.line(why.unwrap_or("The turn ended without an answer."))?;
                }
                return Ok(Some(answered));
            }
            _ => {}
        }
        Ok(None)
    }

    fn line(&mut self, line: &str) -> anyhow::Result<()> {
        self.end_line()?;
        cli::print(&cli::harmless(line))
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        if self.speaking.take().is_some() {
            cli::print("")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_answer_is_one() {
        let ended = |outcome: Value| json!({"type": "ended", "outcome": outcome});
        let mut shown = Shown::default();
        assert_eq!(shown.show(&json!({"type": "started"})).unwrap(), None);
        assert_eq!(shown.show(&ended(json!({"answer": "Yes."}))).unwrap(), Some(true));
        assert_eq!(shown.show(&ended(json!({"error": "No."}))).unwrap(), Some(false));
        assert_eq!(
            shown.show(&ended(json!({"cancelled": "Stopped."}))).unwrap(),
            Some(false)
        );
    }
}
