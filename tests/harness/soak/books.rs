//! What must be in the books after a soak, whatever was killed: each turn ended once and as its script says, each write once with its key
//! and its audit row, each decision once, each question answered once, and nothing asked of a model whose answer was kept.

use super::{Scene, play::Part};
use serde_json::Value;
use sqlx::{FromRow, PgConnection, postgres::PgRow};
use std::collections::BTreeMap;

/// How a turn may end that is not answered: nobody could be told of it, and its person reads that nothing was done.
const ALLOWED_ENDS: [&str; 1] = ["Your message could not be passed on at the moment."];
/// What a model may read of a call that was not done, or of which nobody knows.
const EXCUSES: [&str; 5] = [
    "infrastructure issue",
    "That action could not be completed.",
    "The time for this call",
    "This action may or may not have been carried out.",
    "This call was tried several times and never ended.",
];
/// What a model reads of a call that a person did not want.
const NOT_WANTED: [&str; 3] = ["did not approve", "Do not ask again", "nobody is asked again"];

/// A turn as it is stored.
#[derive(Debug, FromRow)]
struct Stored {
    id: String,
    message: String,
    status: String,
    outcome: Option<String>,
}

/// Looks for whatever should not be.
pub(super) async fn check(scene: &Scene) {
    let mut owner = scene.stage.owner().await;
    let turns = turns(&mut owner).await;
    ends(scene, &turns);
    // what failed was said again, by whoever read so at once
    let begun: Vec<&Stored> = turns.iter().filter(|turn| turn.status != "failed").collect();
    let numbered = begun
        .iter()
        .filter_map(|turn| Some((Part::of(&turn.message)?.number, *turn)));
    let parts: BTreeMap<usize, &Stored> = numbered.collect();
    if parts.len() != begun.len() {
        let (begun, parts) = (begun.len(), parts.len());
        scene.tally.find(format!("{begun} turns begun, of {parts} numbers"));
    }
    made(scene, &mut owner, &turns).await;
    repeated(scene, &mut owner, &parts).await;
    results(scene, &mut owner).await;
    for (wrong, query) in WRONG {
        let rows: Vec<(String,)> = all(&mut owner, query).await;
        for (row,) in rows {
            scene.tally.find(format!("{wrong}: {row}"));
        }
    }
    for refused in scene.play.refused() {
        scene.tally.find(format!("a provider refuses: {refused}"));
    }
    let peer = scene.stage.peer().await;
    let left = [
        ("turns", peer.dead_turns().await),
        ("reports", peer.dead_reports().await),
        ("calls", peer.dead().await),
    ];
    for (what, dead) in left.into_iter().filter(|(_, dead)| *dead > 0) {
        scene.tally.find(format!("{dead} dead letters of {what}"));
    }
}

async fn all<T>(owner: &mut PgConnection, query: &'static str) -> Vec<T>
where
    T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    let rows = sqlx::query_as(query).fetch_all(owner).await;
    rows.unwrap_or_else(|error| panic!("{query}: {error}"))
}

async fn turns(owner: &mut PgConnection) -> Vec<Stored> {
    all(
        owner,
        "SELECT id::text, message, status, outcome FROM turns ORDER BY id",
    )
    .await
}

/// Each turn has ended, and as its script says.
fn ends(scene: &Scene, turns: &[Stored]) {
    for turn in turns {
        let outcome = turn.outcome.as_deref().unwrap_or_default();
        let expected = Part::of(&turn.message).map(|part| part.answer());
        let is_whole = turn.status == "answered" && expected.as_deref() == Some(outcome);
        let is_allowed = turn.status == "failed" && ALLOWED_ENDS.iter().any(|allowed| outcome.starts_with(allowed));
        if !is_whole && !is_allowed {
            let Stored {
                id, message, status, ..
            } = turn;
            scene
                .tally
                .find(format!("turn {id}, {message:?}, is {status}: {outcome:?}"));
        }
    }
}

/// What the turns made is there once, and nothing else; what a model was told that it is done is there.
async fn made(scene: &Scene, owner: &mut PgConnection, turns: &[Stored]) {
    let departments: Vec<(String, i64)> = all(
        owner,
        "SELECT name, count(*) FROM departments WHERE name LIKE 'Soak %' GROUP BY name",
    )
    .await;
    let departments: BTreeMap<_, _> = departments.into_iter().collect();
    let done: Vec<(String, bool)> = all(
        owner,
        "SELECT t.message || '|' || m.name, (m.entry ->> 'succeeded')::boolean FROM turn_messages m JOIN turns t ON t.id = m.turn_id
          WHERE m.name IN ('=write', '=more')",
    )
    .await;
    let done: BTreeMap<_, _> = done.into_iter().collect();
    for turn in turns {
        let Some(part) = Part::of(&turn.message) else { continue };
        for (deed, name) in part.departments() {
            let count = departments.get(&name).copied().unwrap_or_default();
            let told = done.get(&format!("{}|={deed}", turn.message)).copied();
            if count > 1 || (count == 0 && told == Some(true)) || (told.is_none() && turn.status == "answered") {
                scene.tally.find(format!(
                    "department {name:?} is there {count} times; its model was told: {told:?}"
                ));
            }
        }
    }
}

/// No model was asked for an answer that was there already.
async fn repeated(scene: &Scene, owner: &mut PgConnection, parts: &BTreeMap<usize, &Stored>) {
    let kept: Vec<(String, String, i64)> = all(
        owner,
        "SELECT turn_id::text, name, ceil(extract(epoch FROM created_at) * 1000)::bigint FROM turn_messages WHERE name NOT LIKE '=%'",
    )
    .await;
    let kept: BTreeMap<_, _> = kept.into_iter().map(|(turn, name, at)| ((turn, name), at)).collect();
    for ((number, name), asked) in scene.play.asked() {
        let Some(turn) = parts.get(&number) else { continue };
        let at = kept.get(&(turn.id.clone(), name.clone()));
        let late = asked.iter().filter(|asked| at.is_some_and(|at| *asked > at)).count();
        if late > 0 {
            scene.tally.find(format!(
                "turn {}: asked {late} times for {name}, which was kept",
                turn.id
            ));
        }
    }
}

/// A model reads of a call what came of it, or an excuse; never that it did twice what it did once.
async fn results(scene: &Scene, owner: &mut PgConnection) {
    for (turn, call, content) in errors(owner).await {
        let is_known = EXCUSES.iter().chain(&NOT_WANTED).any(|known| content.contains(known));
        if !is_known {
            scene
                .tally
                .find(format!("turn {turn}: of {call} the model reads {content}"));
        }
    }
}

async fn errors(owner: &mut PgConnection) -> Vec<(String, String, String)> {
    let query = "SELECT turn_id::text, name, entry ->> 'content' FROM turn_messages
                  WHERE name LIKE '=%' AND NOT (entry ->> 'succeeded')::boolean";
    all(owner, query).await
}

/// What should have no rows, and what it would mean.
const WRONG: [(&str, &str); 10] = [
    (
        "a turn without its one end",
        "SELECT t.id::text FROM turns t
          WHERE (SELECT count(*) FROM turn_events e WHERE e.turn_id = t.id AND e.event ->> 'type' = 'ended') <> 1",
    ),
    (
        "a key without its audit row",
        "SELECT c.key || ' ' || c.event FROM tool_calls c
          WHERE NOT EXISTS (SELECT FROM audit_log a WHERE a.turn_id || ':' || a.tool_call_id = c.key AND a.event = c.event)",
    ),
    (
        "an audit row without its key, or more than one of a key",
        "SELECT a.turn_id || ':' || a.tool_call_id || ' ' || count(*) FROM audit_log a WHERE a.event <> 'decide.approval'
          GROUP BY a.turn_id, a.tool_call_id
         HAVING count(*) <> 1 OR NOT EXISTS (SELECT FROM tool_calls c WHERE c.key = a.turn_id || ':' || a.tool_call_id)",
    ),
    (
        "an approval that is not decided",
        "SELECT id || ' ' || status FROM approvals WHERE status NOT IN ('executed', 'rejected', 'replaced', 'asked_anew')",
    ),
    (
        "an approval that was not carried out as often as it should",
        "SELECT p.id || ' ' || p.status || ' ' || count(a) FROM approvals p
           LEFT JOIN audit_log a ON a.approval_id = p.id AND a.event = p.event
          GROUP BY p.school_id, p.id HAVING count(a) <> CASE p.status WHEN 'executed' THEN 1 ELSE 0 END",
    ),
    (
        "an approval whose decisions are not one",
        "SELECT p.id || ' ' || p.status || ' ' || count(a) FROM approvals p
           LEFT JOIN audit_log a ON a.approval_id = p.id AND a.event = 'decide.approval'
          GROUP BY p.school_id, p.id HAVING count(a) <> 1",
    ),
    (
        "announcements that are not as many as were approved",
        "SELECT title || ' ' || count(*) FROM announcements n WHERE title LIKE 'Soak %' GROUP BY title
         HAVING count(*) <> (SELECT count(*) FROM approvals p WHERE p.status = 'executed' AND p.arguments ->> 'title' = n.title)",
    ),
    (
        "an approval that was executed, and no announcement",
        "SELECT p.id::text FROM approvals p
          WHERE p.status = 'executed' AND NOT EXISTS (SELECT FROM announcements n WHERE n.title = p.arguments ->> 'title')",
    ),
    (
        // of a call that was decided while another run made it again, its end tells enough
        "a question or approval that was not settled and told once",
        "SELECT w.turn_id || ' ' || w.tool_call_id FROM turn_waits w
           LEFT JOIN turn_events e ON e.turn_id = w.turn_id AND e.event ->> 'toolCallId' = w.tool_call_id
          GROUP BY w.turn_id, w.tool_call_id, w.settled_at, w.approval_id
         HAVING w.settled_at IS NULL OR count(e) FILTER (WHERE e.event ->> 'type' IN ('answered', 'decided')
                                    AND coalesce(e.event ->> 'decision', '') NOT IN ('replaced', 'asked_anew')) > 1
             OR count(e) FILTER (WHERE e.event ->> 'type' IN ('answered', 'decided')
                                    OR (w.approval_id IS NOT NULL AND e.event ->> 'type' = 'tool_ended')) = 0",
    ),
    (
        "a call of an answered turn without its one result",
        "SELECT m.turn_id || ' ' || (c ->> 'id') FROM turn_messages m JOIN turns t ON t.id = m.turn_id AND t.status = 'answered',
                LATERAL jsonb_array_elements(coalesce(m.entry -> 'message' -> 'tool_calls', '[]')) c
          WHERE m.name LIKE '#%' AND NOT EXISTS (SELECT FROM turn_messages r WHERE r.turn_id = m.turn_id AND r.name = '=' || (c ->> 'id'))",
    ),
];

/// What is told of the books, in figures.
pub(super) async fn lines(scene: &Scene) -> Vec<(String, String)> {
    let mut owner = scene.stage.owner().await;
    let turns = turns(&mut owner).await;
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for turn in &turns {
        let words = match turn.status.as_str() {
            "answered" => "turns that were answered".to_owned(),
            status => format!(
                "turns that are {status}: {}",
                short(turn.outcome.as_deref().unwrap_or_default())
            ),
        };
        *ends.entry(words).or_default() += 1;
    }
    let mut lines = vec![("turns".to_owned(), turns.len().to_string())];
    lines.extend(ends.into_iter().map(|(words, count)| (words, count.to_string())));
    for (words, query) in FIGURES {
        let figure: Vec<(i64,)> = all(&mut owner, query).await;
        lines.push((
            words.to_owned(),
            figure.first().map(|(figure,)| figure.to_string()).unwrap_or_default(),
        ));
    }
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for (_, _, content) in errors(&mut owner).await {
        *told
            .entry(format!("calls of which a model reads {}", short(&words_of(&content))))
            .or_default() += 1;
    }
    lines.extend(told.into_iter().map(|(words, count)| (words, count.to_string())));
    let asked = scene.play.asked();
    let requests: usize = asked.values().map(Vec::len).sum();
    lines.push(("requests to the model".to_owned(), requests.to_string()));
    lines.push((
        "of which again, their answer not kept".to_owned(),
        (requests - asked.len()).to_string(),
    ));
    lines
}

const FIGURES: [(&str, &str); 8] = [
    ("turns that went on after they waited", "SELECT count(*) FROM turns t WHERE EXISTS (SELECT FROM turn_waits w WHERE w.turn_id = t.id)"),
    (
        "turns that went on after a run was lost",
        "SELECT count(*) FROM turns t
          WHERE dispatch > 1 + (SELECT count(*) FROM turn_events e WHERE e.turn_id = t.id AND e.event ->> 'type' = 'waiting')",
    ),
    ("runs of the turn with the most", "SELECT coalesce(max(attempt), 0)::bigint FROM turns"),
    ("writes", "SELECT count(*) FROM audit_log WHERE event <> 'decide.approval'"),
    ("keys", "SELECT count(*) FROM tool_calls"),
    ("approvals carried out", "SELECT count(*) FROM approvals WHERE status = 'executed'"),
    ("approvals rejected", "SELECT count(*) FROM approvals WHERE status = 'rejected'"),
    ("events", "SELECT count(*) FROM turn_events"),
];

fn words_of(content: &str) -> String {
    let error = serde_json::from_str::<Value>(content)
        .ok()
        .and_then(|content| content["error"].as_str().map(str::to_owned));
    error.unwrap_or_else(|| content.to_owned())
}

fn short(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    format!("{short:?}")
}
