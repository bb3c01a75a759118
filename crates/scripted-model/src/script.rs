//! What the server answers: by rules, from a queue, or by a test's own function.

use serde_json::Value;
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Longer than anybody waits.
const FOR_EVER: Duration = Duration::from_hours(24);

/// Where the answers come from.
#[derive(Clone)]
pub struct Script(pub(crate) Source);

#[derive(Clone)]
pub(crate) enum Source {
    Rules,
    Queue(Arc<Mutex<VecDeque<Reply>>>),
    Function(Arc<dyn Fn(&Value) -> Reply + Send + Sync>),
}

impl Script {
    /// The rules of the demo.
    #[must_use]
    pub const fn rules() -> Self {
        Self(Source::Rules)
    }

    /// These replies, one a request; a request after the last one is refused with status 400.
    #[must_use]
    pub fn queue(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Source::Queue(Arc::new(Mutex::new(replies.into_iter().collect()))))
    }

    /// What a function makes of each request.
    #[must_use]
    pub fn function(reply: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self(Source::Function(Arc::new(reply)))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Rules => "Script::rules",
            Source::Queue(_) => "Script::queue",
            Source::Function(_) => "Script::function",
        })
    }
}

impl Source {
    /// The next scripted reply; none where the rules decide.
    pub(crate) fn scripted(&self, request: &Value) -> Option<Reply> {
        match self {
            Self::Rules => None,
            Self::Queue(queue) => Some(
                queue
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front()
                    .unwrap_or_else(|| {
                        Reply::status(
                            400,
                            r#"{"error": {"message": "the script is at its end", "type": "script_ended"}}"#,
                        )
                    }),
            ),
            Self::Function(function) => Some(function(request)),
        }
    }
}

/// One answer of the server.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) delay: Duration,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
    pub(crate) fault: Option<Fault>,
}

/// What goes wrong with a stream, after so many chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Torn(usize),
    Silent(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Completion { text: Option<String>, calls: Vec<Call> },
    Raw { status: u16, body: String },
}

/// A call that a reply asks for, its arguments as a raw text.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Reply {
    fn of(body: Body) -> Self {
        Self {
            delay: Duration::ZERO,
            headers: Vec::new(),
            body,
            fault: None,
        }
    }

    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Body::Completion {
            text: Some(text.into()),
            calls: Vec::new(),
        })
    }

    /// A call with an id that the server makes; the arguments are sent as they are, valid or not.
    #[must_use]
    pub fn call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::of(Body::Completion {
            text: None,
            calls: Vec::new(),
        })
        .and_call(None, name, arguments)
    }

    /// One more call, with this id or one that the server makes.
    #[must_use]
    pub fn and_call(mut self, id: Option<&str>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        if let Body::Completion { calls, .. } = &mut self.body {
            calls.push(Call {
                id: id.map(str::to_owned),
                name: name.into(),
                arguments: arguments.into(),
            });
        }
        self
    }

    /// Neither text nor calls.
    #[must_use]
    pub fn nothing() -> Self {
        Self::of(Body::Completion {
            text: None,
            calls: Vec::new(),
        })
    }

    /// Any status with any body.
    #[must_use]
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self::of(Body::Raw {
            status,
            body: body.into(),
        })
    }

    /// Status 200 with any body.
    #[must_use]
    pub fn raw(body: impl Into<String>) -> Self {
        Self::status(200, body)
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same, later.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Nothing at all: the endpoint takes the request and is silent.
    #[must_use]
    pub fn hanging() -> Self {
        Self::nothing().after(FOR_EVER)
    }

    /// The same, but the connection breaks after so many chunks of the stream. A call has one for its name and at least
    /// three for arguments of that many characters; before all stands one with the role.
    #[must_use]
    pub fn torn_after(self, chunks: usize) -> Self {
        Self {
            fault: Some(Fault::Torn(chunks)),
            ..self
        }
    }

    /// The same, but after so many chunks of the stream nothing comes any more.
    #[must_use]
    pub fn silent_after(self, chunks: usize) -> Self {
        Self {
            fault: Some(Fault::Silent(chunks)),
            ..self
        }
    }
}
