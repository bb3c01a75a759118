//! ad-hoc
use futures_util::StreamExt;
use lapin::{options::*, types::*, *};
use serde_json::json;
use std::time::Duration;
use worker::config::*;
use scripted_model::*;
use uuid::Uuid;
#[tokio::main]
async fn main() {
    tracing_subscriber::fmt().with_env_filter("info,lapin=error").with_writer(std::io::stderr).init();
    let url = "amqp://guest:guest@127.0.0.1:5672/scratch_worker".to_owned();
    let model = ScriptedModel::start(Script::rules()).await.unwrap();
    let env = [("AMQP_URL", url.clone()), ("MODEL", "m".into()), ("OPENAI_BASE_URL", model.base_url()), ("QUEUE_PREFIX", "p7.".into())];
    let config = Config::from_lookup(|n| env.iter().find(|(k, _)| *k == n).map(|(_, v)| v.clone())).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let w = tokio::spawn(worker::run(config, async move { let _ = stopped.await; }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let c = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
    let ch = c.create_channel().await.unwrap();
    let mut cons = ch.basic_consume("amq.rabbitmq.reply-to".into(), "".into(), BasicConsumeOptions { no_ack: true, ..Default::default() }, FieldTable::default()).await.unwrap();
    for text in ["What time is it?", "Create a department called Drama", "What can you do?", ""] {
        let body = if text.is_empty() { b"{".to_vec() } else { serde_json::to_vec(&json!({"turnId": Uuid::new_v4(), "grant": "g", "message": text, "deadlineMs": chrono::Utc::now().timestamp_millis() + 60000,
        "context": {"userDetails": {"name": "A", "email": "a@b.example", "userId": Uuid::nil(), "profileId": Uuid::nil(), "userType": "STAFF"}, "timeZone": "Africa/Kampala", "runMode": {"mode": "school"}}})).unwrap() };
        ch.basic_publish("".into(), "p7.agent.turns".into(), BasicPublishOptions::default(), &body, BasicProperties::default().with_reply_to("amq.rabbitmq.reply-to".into()).with_correlation_id("x".into()).with_delivery_mode(2)).await.unwrap();
        let d = tokio::time::timeout(Duration::from_secs(5), cons.next()).await.unwrap().unwrap().unwrap();
        println!("{}", String::from_utf8_lossy(&d.data));
    }
    let _ = stop.send(()); println!("{:?}", w.await.unwrap());
}
