//! What the stored rows say of a turn.

use anyhow::bail;

use crate::scratch::Scratch;

/// A line for each event that matters, in order: how the turn stands, the type, the tool, its arguments, and whether
/// there is something in it. The arguments of what a specialist calls are not kept, and come as nothing. The end has
/// also the longest text of the tools' data that the answer names.
const EVENTS: &str = r#"
with turn as (
    select school_id, id, status, message, outcome
      from turns where message = :'message' order by created_at desc limit 1
)
select turn.status,
       told.event ->> 'type',
       told.event ->> 'tool',
       (select (call -> 'function' ->> 'arguments')::jsonb
          from turn_events said,
               jsonb_array_elements(said.event -> 'messages') part,
               jsonb_array_elements(part -> 'tool_calls') call
         where said.school_id = turn.school_id and said.turn_id = turn.id
           and call ->> 'id' = told.event ->> 'toolCallId'
         limit 1),
       case when coalesce(told.event ->> 'scopeContext', told.event ->> 'delta',
                          told.event #>> '{outcome,answer}') <> '' then 'data' else 'none' end,
       case when told.event ->> 'type' = 'ended' then
           (select found #>> '{}'
              from turn_events said,
                   jsonb_array_elements(said.event -> 'messages') part,
                   jsonb_path_query(
                       case when part ->> 'role' = 'tool' then (part ->> 'content')::jsonb -> 'data' end,
                       'strict $.** ? (@.type() == "string" && @ like_regex "^[^\t\n]{4,}$")') found
             where said.school_id = turn.school_id and said.turn_id = turn.id
               and strpos(lower(turn.outcome), lower(found #>> '{}')) > 0
               and strpos(lower(turn.message), lower(found #>> '{}')) = 0
             order by length(found #>> '{}') desc
             limit 1)
       end
  from turn join turn_events told on told.school_id = turn.school_id and told.turn_id = turn.id
 where told.event ->> 'type' in ('text', 'tool_ended', 'ended')
 order by told.attempt, told.place;
"#;

/// A turn as it was stored.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    status: String,
    events: Vec<Event>,
    /// What the answer has of the data. Of a model of this size, more than can be asked.
    quoted: String,
}

/// What happened in it.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Text,
    ToolEnded {
        tool: String,
        arguments: String,
        with_data: bool,
    },
    Ended {
        with_answer: bool,
    },
}

impl Turn {
    /// The newest turn of this message.
    pub(super) fn read(scratch: &Scratch<'_>, message: &str) -> anyhow::Result<Self> {
        let message = format!("message={message}");
        let options = ["--no-align", "--tuples-only", "--field-separator=\t", "--set", &message];
        Self::parse(&scratch.psql(&options, EVENTS)?)
    }

    fn parse(rows: &str) -> anyhow::Result<Self> {
        let mut turn = Self::default();
        for row in rows.lines() {
            let columns: Vec<&str> = row.split('\t').collect();
            let &[status, kind, tool, arguments, with, quoted] = columns.as_slice() else {
                bail!("a row of an event has not six columns: {row}");
            };
            let is_there = with == "data";
            status.clone_into(&mut turn.status);
            quoted.clone_into(&mut turn.quoted);
            turn.events.extend(match kind {
                "text" if is_there => Some(Event::Text),
                "tool_ended" => Some(Event::ToolEnded {
                    tool: tool.to_owned(),
                    arguments: arguments.to_owned(),
                    with_data: is_there,
                }),
                "ended" => Some(Event::Ended { with_answer: is_there }),
                _ => None,
            });
        }
        Ok(turn)
    }

    /// Whether a tool that reads was called with an object that it takes and gave data, and the answer came after that.
    pub(super) fn answered_after_data(&self, reads: &[String]) -> bool {
        let is_data = |event: &Event| {
            matches!(event, Event::ToolEnded { tool, arguments, with_data: true }
            if arguments.starts_with('{') && reads.contains(tool))
        };
        let Some(read) = self.events.iter().position(is_data) else {
            return false;
        };
        let after = self.events.get(read..).unwrap_or_default();
        self.status == "answered"
            && after.contains(&Event::Text)
            && after.last() == Some(&Event::Ended { with_answer: true })
    }

    /// How it ended, in how many parts text was told, and what of the data it names.
    pub(super) fn ending(&self) -> String {
        let texts = self.events.iter().filter(|event| **event == Event::Text).count();
        let quoted = match self.quoted.as_str() {
            "" => "none of the data".to_owned(),
            quoted => format!("\"{quoted}\""),
        };
        format!("{}, text in {texts}, naming {quoted}", self.status)
    }

    /// What was called with what, and how each ended.
    pub(super) fn calls(&self) -> String {
        let call = |event: &Event| match event {
            Event::ToolEnded {
                tool,
                arguments,
                with_data,
            } => {
                let how = if *with_data { "data" } else { "error" };
                Some(format!("{tool} {arguments} → {how}"))
            }
            Event::Text | Event::Ended { .. } => None,
        };
        let calls: Vec<String> = self.events.iter().filter_map(call).collect();
        if calls.is_empty() {
            "no tool".to_owned()
        } else {
            calls.join(", ")
        }
    }
}

/// The names in the table of `server tools` whose effect is to read.
pub(super) fn reading_tools(table: &str) -> Vec<String> {
    let names = table.lines().filter(|line| line.trim_end().ends_with(" read"));
    names
        .filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Turn, reading_tools};

    fn passes(rows: &[&str]) -> bool {
        let rows: Vec<String> = rows.iter().map(|row| row.replace(' ', "\t") + "\t").collect();
        Turn::parse(&rows.join("\n"))
            .unwrap()
            .answered_after_data(&["list_staff".to_owned()])
    }

    #[test]
    fn only_an_answer_after_data_passes() {
        let read = "answered tool_ended list_staff {} data";
        let (text, end) = ("answered text   data", "answered ended   data");
        assert!(passes(&[read, text, end]));
        assert!(passes(&[
            text,
            "answered tool_ended list_staff {} none",
            read,
            text,
            end
        ]));

        assert!(!passes(&[]), "no turn");
        assert!(!passes(&[text, end]), "no tool");
        assert!(!passes(&[text, read, end]), "nothing was said after it");
        assert!(!passes(&[read, text, "failed ended   none"]));
        assert!(
            !passes(&["answered tool_ended list_staff {} none", text, end]),
            "an error"
        );
        assert!(
            !passes(&["answered tool_ended create_department {} data", text, end]),
            "a write"
        );
        assert!(
            !passes(&["answered tool_ended get_current_time {} data", text, end]),
            "no hop"
        );
        assert!(
            !passes(&["answered tool_ended list_staff  data", text, end]),
            "no arguments"
        );
    }

    #[test]
    fn a_row_of_another_shape_is_told() {
        assert!(Turn::parse("answered\ttext").is_err());
    }

    #[test]
    fn what_reads_is_told_by_the_last_column() {
        let table =
            "NAME        EVENT       EFFECT\nlist_staff  list.staff  read\nread_x      create.x    write, audited";
        assert_eq!(reading_tools(table), ["list_staff"]);
    }
}
