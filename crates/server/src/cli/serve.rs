//! `server serve`: calls, reports of turns, and the HTTP door, until SIGTERM or Ctrl-C.

use crate::{
    config::{BrokerConfig, Config, HttpConfig},
    conversation::{Conversations, hub::Hub},
    decision::{Decisions, care::GIVEN_UP_AFTER},
    execute::Pipeline,
    grant::Ungranted,
    http::{self, Door, auth::Authenticator},
    rpc::{
        self,
        reports::{Books, take_reports},
        turns::TurnSender,
    },
};
use anyhow::Context;
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinSet,
};

/// How often it is looked for turns and approvals that nobody ended.
const LOOK_FOR_OVERDUE: Duration = Duration::from_secs(5);

pub(super) async fn serve(config: Config) -> anyhow::Result<()> {
    if config.ungranted == Ungranted::Admit {
        tracing::warn!("REQUIRE_GRANT=false: whoever reaches the broker can act for anybody");
    }
    let database = super::connect(&config.roles)?;
    database
        .check()
        .await
        .context("the database does not answer; is it migrated?")?;
    let conversations = Conversations::new(database.clone(), config.grants.clone(), config.daily_tokens);
    let conversations = Arc::new(conversations.with_open_turns(config.open_turns));
    let pipeline = Arc::new(Pipeline::new(database.clone(), config.grants)?);
    let decisions = Arc::new(Decisions::new(Arc::clone(&pipeline)));
    // before anything that somebody could see begin, and then stop
    let mut told_to_stop = pin!(shutdown()?);
    let (stop, stopping) = watch::channel(false);
    let hub = Arc::new(Hub::new());
    // among the worker threads: to this one each delivery would have to cross, and wake it
    let mut tasks = JoinSet::new();
    let turns = Arc::new(TurnSender::new(config.broker.clone()));
    let books = Books {
        conversations,
        turns: Arc::clone(&turns),
    };
    if let Some(http) = &config.http {
        let door = Door {
            books: books.clone(),
            decisions: Arc::clone(&decisions),
            auth: Authenticator::new(&http.auth).context("AUTH_SECRET")?,
            hub: Arc::clone(&hub),
            streams: Arc::default(),
            stopping: stopping.clone(),
        };
        open_door(&mut tasks, http, door).await?;
    }
    look_after_approvals(&mut tasks, decisions, books.clone(), &hub, &stopping);
    serve_conversations(&mut tasks, &config.broker, books, &hub, &stopping);
    let (broker, until) = (config.broker, stopped(stopping));
    tasks.spawn(async move {
        rpc::serve(pipeline, &broker, until, || {
            tracing::info!("taking tool calls");
            // the line that whoever started this process waits for; a closed stdout is no reason to stop serving
            let _ = super::print("server ready");
        })
        .await;
        Ok(())
    });
    let mut first = Ok(());
    loop {
        tokio::select! {
            () = &mut told_to_stop, if !*stop.borrow() => {
                stop.send_replace(true);
            }
            ended = tasks.join_next() => match ended {
                None => break,
                Some(ended) => {
                    // one that ends ends all: half a server looks like a whole one
                    stop.send_replace(true);
                    first = first.and(ended.context("a task of the server failed").and_then(|ended| ended));
                }
            },
        }
    }
    turns.close().await;
    database.close().await;
    first
}

/// What keeps conversations going in every server, whether people come in by this one or not.
fn serve_conversations(
    tasks: &mut JoinSet<anyhow::Result<()>>,
    broker: &BrokerConfig,
    books: Books,
    hub: &Arc<Hub>,
    stopping: &watch::Receiver<bool>,
) {
    let (broker, until) = (broker.clone(), stopped(stopping.clone()));
    let (kept, conversations, stored) = (books.clone(), Arc::clone(&books.conversations), Arc::clone(hub));
    tasks.spawn(async move {
        take_reports(books, &broker, until, move |turn| stored.stored(turn)).await;
        Ok(())
    });
    let (until, hub) = (stopped(stopping.clone()), Arc::clone(hub));
    tasks.spawn(async move {
        tokio::select! {
            () = until => {}
            () = hub.tell_others(&conversations) => {}
            () = hub.hear_others(&conversations) => {}
            () = look_after(&kept, &hub) => {}
        }
        Ok(())
    });
}

/// What keeps approvals going in every server: those that nobody decided end, what was approved is done, and turns are told.
fn look_after_approvals(
    tasks: &mut JoinSet<anyhow::Result<()>>,
    decisions: Arc<Decisions>,
    books: Books,
    hub: &Arc<Hub>,
    stopping: &watch::Receiver<bool>,
) {
    let (until, hub) = (stopped(stopping.clone()), Arc::clone(hub));
    let looking = async move {
        loop {
            tokio::time::sleep(LOOK_FOR_OVERDUE).await;
            if let Err(error) = decisions.look_after(GIVEN_UP_AFTER).await {
                tracing::warn!(%error, "approvals could not be looked after");
            }
            http::approvals::tell_turns(&decisions, &books, &hub).await;
        }
    };
    tasks.spawn(async move {
        tokio::select! {
            () = until => {}
            () = looking => {}
        }
        Ok(())
    });
}

/// Ends turns that nobody ends, and sends those that nobody has sent.
async fn look_after(books: &Books, hub: &Hub) {
    loop {
        tokio::time::sleep(LOOK_FOR_OVERDUE).await;
        match books.conversations.unsent().await {
            Ok(due) => {
                for due in due {
                    books.send(due).await;
                    hub.stored(due.turn);
                }
            }
            Err(error) => tracing::warn!(%error, "turns that were not sent could not be looked for"),
        }
        match books.conversations.end_overdue().await {
            Ok(turns) => turns.into_iter().for_each(|turn| {
                tracing::warn!(%turn, "a turn was given up: nobody ended it in time");
                hub.stored(turn);
            }),
            Err(error) => tracing::warn!(%error, "overdue turns could not be looked for"),
        }
    }
}

async fn open_door(tasks: &mut JoinSet<anyhow::Result<()>>, http: &HttpConfig, door: Door) -> anyhow::Result<()> {
    let listener = TcpListener::bind(http.address)
        .await
        .with_context(|| format!("listening on {}", http.address))?;
    let address = listener.local_addr()?;
    let until = stopped(door.stopping.clone());
    super::print(&format!("http://{address}"))?;
    tasks.spawn(async move {
        http::serve(listener, Arc::new(door), until).await;
        Ok(())
    });
    Ok(())
}

async fn stopped(mut stopping: watch::Receiver<bool>) {
    // an error is the end of whoever would tell
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

fn shutdown() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: calls in flight are answered first");
    })
}
