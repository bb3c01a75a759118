//! A list does not slow down with its school: with 20,000 students a page reads no table from one end to the other, and no more rows
//! than it read of a small school. Rows are counted, never time.

use contract::{RpcTool, tools::RPC_AGENT_TOOLS};
use e2e::{
    Person, Stage,
    fixtures::HILLTOP,
    growth::TableReads,
    stage::{data, incoming},
};
use serde_json::json;

/// A table of fewer rows is read whole faster than by an index.
const SMALL: i64 = 1_000;
/// Rows a page in this test, so that a small school has a page as full as a large one.
const PAGE: u16 = 10;
/// How many times more rows a page may read in a large school: indexes are deeper, and hits lie among more that are none.
const TIMES: i64 = 2;
/// What else a call may read whatever its page: the facts about its caller.
const BESIDES: i64 = 100;

fn lists() -> impl Iterator<Item = &'static RpcTool> {
    let is_list = |tool: &&RpcTool| ["list", "search"].contains(&tool.definition.event.verb());
    RPC_AGENT_TOOLS.iter().filter(is_list)
}

/// What a tool's example reads of each table, and the rows that it shows.
async fn page(stage: &Stage, user: &Person, tool: &RpcTool) -> (Vec<TableReads>, usize) {
    let mut args = HILLTOP.example(tool);
    if tool.schema()["properties"].get("limit").is_some() {
        args["limit"] = json!(PAGE);
    }
    let before = stage.reads().await;
    let call = |id: &str| incoming(user, tool.definition.name, args.clone(), id);
    let shown = {
        let pipeline = stage.another_pipeline();
        data(pipeline.execute(call("1")).await)
    };
    let after = stage.reads().await;
    let reads = after.iter().map(|table| table.since(&before)).collect();
    let rows = shown["rows"].as_array().map_or(0, Vec::len);
    (reads, rows)
}

#[tokio::test]
async fn leaves_the_cost_of_a_page_what_it_is() {
    let (small, large) = (Stage::new().await, Stage::new().await);
    small.arrange("ANALYZE").await;
    large.grow().await;
    assert_eq!(
        large
            .count("SELECT count(*) FROM students s JOIN schools h ON h.id = s.school_id AND h.slug = 'hilltop'")
            .await,
        20_000
    );
    let mut users = Vec::new();
    for tool in lists() {
        users.push((tool, small.person(&HILLTOP.user_of(tool)).await));
    }
    let mut problems = Vec::new();
    for (tool, user) in &users {
        let name = tool.definition.name;
        let (of_small, _) = page(&small, user, tool).await;
        let (of_large, shown) = page(&large, user, tool).await;
        let whole = of_large.iter().filter(|table| table.rows > SMALL && table.scans > 0);
        problems.extend(whole.map(|table| format!("{name} reads all {} rows of {}", table.rows, table.name)));
        let read = |tables: &[TableReads]| tables.iter().map(TableReads::read).sum::<i64>();
        let (before, after) = (read(&of_small), read(&of_large));
        if after > before * TIMES + BESIDES {
            let most = of_large
                .iter()
                .max_by_key(|table| table.read())
                .expect("there are tables");
            problems.push(format!(
                "{name} reads {after} rows for {shown}, and {before} in a small school; {} of {}",
                most.read(),
                most.name
            ));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    small.finish().await;
    large.finish().await;
}

/// The test above counts what is read.
#[tokio::test]
async fn would_show_if_a_list_read_its_table_whole() {
    let stage = Stage::new().await;
    stage.grow().await;
    let tool = lists()
        .find(|tool| tool.definition.name == "list_departments")
        .expect("there is such a list");
    let admin = stage.person(&HILLTOP.email("admin")).await;
    let (reads, shown) = page(&stage, &admin, tool).await;
    let of = |name: &str, reads: &[TableReads]| {
        reads
            .iter()
            .find(|table| table.name == name)
            .cloned()
            .expect("it is counted")
    };
    let departments = of("departments", &reads);
    assert_eq!(shown, usize::from(PAGE));
    assert_eq!(departments.scans, 0, "{departments:?}");
    assert!(departments.looked_up >= i64::from(PAGE), "{departments:?}");
    stage
        .arrange("DROP INDEX departments_list_idx; DROP INDEX departments_name_key")
        .await;
    let (reads, _) = page(&stage, &admin, tool).await;
    let departments = of("departments", &reads);
    assert!(departments.read() > 100, "{departments:?}");
    stage.finish().await;
}
