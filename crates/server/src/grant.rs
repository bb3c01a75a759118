//! Turn grants: proof that the server itself handed out the right to call in a turn.
//!
//! A grant is an HMAC over identity, scope, turn, door and expiry. Whoever reaches the broker can therefore act for nobody, except
//! in turns that it was handed, until they expire. Step 3 of `execute()` turns an envelope and its grant into a [`Caller`], and
//! nothing else can.

use crate::{clock, error::ToolError};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract::{AgentCallScope, AgentIdentity, turn::MAX_TOOL_CALL_ID_CHARS};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;
use uuid::Uuid;

/// The shortest secret that grants may be signed with, in bytes: as long as what the HMAC puts out.
pub const MIN_SECRET_BYTES: usize = 32;

/// Grants are short; anything longer is not one of ours.
const MAX_TOKEN_BYTES: usize = 4096;
const PREFIX: &str = "v1";

/// Through which door a turn came in; written into every audit row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Door {
    /// A message in chat.
    Chat,
    /// A request at the HTTP door.
    Rest,
    /// An operator at a terminal.
    Operator,
    /// A peer without grants, where the server admits such.
    Peer,
}

impl Door {
    /// The word in the audit log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Rest => "rest",
            Self::Operator => "operator",
            Self::Peer => "peer",
        }
    }
}

/// What a grant says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnGrant {
    /// For whom.
    pub identity: AgentIdentity,
    /// Pinned where.
    pub scope: AgentCallScope,
    /// In which turn.
    pub turn_id: Uuid,
    /// Through which door.
    pub door: Door,
    /// Until when, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

/// Why a grant was refused. The texts tell a caller nothing that helps to forge one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// There is none, and one is needed.
    #[error("this call carries no turn grant")]
    Missing,
    /// It was not signed by this server's secret, or was altered.
    #[error("this call's turn grant is not valid")]
    Forged,
    /// Its time is over.
    #[error("this turn has expired")]
    Expired,
    /// It is for another identity or scope than the envelope's.
    #[error("this call's turn grant is for another identity or scope")]
    Mismatch,
    /// The call's key belongs to another turn.
    #[error("this call's key belongs to another turn")]
    ForeignKey,
}

/// Who calls, proven: made only by [`GrantKey::admit`].
#[derive(Debug, Clone)]
pub struct Caller {
    identity: AgentIdentity,
    scope: AgentCallScope,
    turn_id: Option<Uuid>,
    door: Door,
}

impl Caller {
    /// For whom the call is made.
    #[must_use]
    pub const fn identity(&self) -> &AgentIdentity {
        &self.identity
    }

    /// Where it is pinned.
    #[must_use]
    pub const fn scope(&self) -> AgentCallScope {
        self.scope
    }

    /// In which turn; none for a peer without grants.
    #[must_use]
    pub const fn turn_id(&self) -> Option<Uuid> {
        self.turn_id
    }

    /// Through which door.
    #[must_use]
    pub const fn door(&self) -> Door {
        self.door
    }
}

/// Whether a call without a grant is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ungranted {
    /// It is refused.
    Refuse,
    /// It is admitted as a peer's: for closed networks and interoperation only.
    Admit,
}

/// The secret that grants are signed with.
#[derive(Clone)]
pub struct GrantKey {
    mac: Hmac<Sha256>,
    ungranted: Ungranted,
}

impl GrantKey {
    /// A key of a secret of at least [`MIN_SECRET_BYTES`], which the configuration has checked.
    #[must_use]
    pub fn new(secret: &[u8], ungranted: Ungranted) -> Option<Self> {
        let mac = Hmac::new_from_slice(secret).ok()?;
        (secret.len() >= MIN_SECRET_BYTES).then_some(Self { mac, ungranted })
    }

    /// The token for a grant.
    ///
    /// # Errors
    ///
    /// When the grant cannot be put into JSON, which would be a fault of ours.
    pub fn mint(&self, grant: &TurnGrant) -> Result<String, serde_json::Error> {
        let payload = BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(grant)?);
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.signed(&payload).finalize().into_bytes());
        Ok(format!("{PREFIX}.{payload}.{signature}"))
    }

    /// Turns an envelope and its token into a caller. The token must verify, must not have expired, and must be for exactly this
    /// identity and scope.
    ///
    /// # Errors
    ///
    /// The [`GrantError`] that says why not.
    pub fn admit(
        &self,
        identity: AgentIdentity,
        scope: AgentCallScope,
        token: Option<&str>,
    ) -> Result<Caller, GrantError> {
        let Some(token) = token else {
            return match self.ungranted {
                Ungranted::Refuse => Err(GrantError::Missing),
                Ungranted::Admit => Ok(Caller {
                    identity,
                    scope,
                    turn_id: None,
                    door: Door::Peer,
                }),
            };
        };
        let grant = self.verify(token)?;
        if clock::left_until(grant.expires_at_ms).is_none() {
            return Err(GrantError::Expired);
        }
        if grant.identity != identity || grant.scope != scope {
            return Err(GrantError::Mismatch);
        }
        Ok(Caller {
            identity,
            scope,
            turn_id: Some(grant.turn_id),
            door: grant.door,
        })
    }

    /// The grant of a token, whether or not its time is over: for claims and reports of a turn, each of which may come late by its own bound.
    ///
    /// # Errors
    ///
    /// [`GrantError::Forged`].
    pub(crate) fn read(&self, token: &str) -> Result<TurnGrant, GrantError> {
        self.verify(token)
    }

    fn verify(&self, token: &str) -> Result<TurnGrant, GrantError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(GrantError::Forged);
        }
        let mut parts = token.split('.');
        let (Some(PREFIX), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(GrantError::Forged);
        };
        let signature = BASE64_URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| GrantError::Forged)?;
        self.signed(payload)
            .verify_slice(&signature)
            .map_err(|_| GrantError::Forged)?;
        let payload = BASE64_URL_SAFE_NO_PAD.decode(payload).map_err(|_| GrantError::Forged)?;
        serde_json::from_slice(&payload).map_err(|_| GrantError::Forged)
    }

    fn signed(&self, payload: &str) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(PREFIX.as_bytes());
        mac.update(b".");
        mac.update(payload.as_bytes());
        mac
    }
}

impl fmt::Debug for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantKey")
            .field("ungranted", &self.ungranted)
            .finish_non_exhaustive()
    }
}

/// Whether this can be the id of a call in its turn, which columns hold to the same.
pub(crate) fn is_call_id(id: &str) -> bool {
    !id.is_empty() && !id.contains('\0') && id.chars().nth(MAX_TOOL_CALL_ID_CHARS).is_none()
}

/// The key of a call must be of the caller's own turn, so that no turn can ask for another's stored reply; and what it ends with must be
/// an id that the turn can be told of.
pub(crate) fn own_key(caller: &Caller, key: &str) -> Result<(), ToolError> {
    let Some(turn) = caller.turn_id else { return Ok(()) };
    let id = key.strip_prefix(&turn.to_string());
    let id = id
        .and_then(|rest| rest.strip_prefix(':'))
        .ok_or(GrantError::ForeignKey)?;
    if is_call_id(id) {
        return Ok(());
    }
    Err(ToolError::Malformed(format!(
        "the id of the call must have 1 to {MAX_TOOL_CALL_ID_CHARS} characters"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::UserType;

    fn key() -> GrantKey {
        GrantKey::new(&[7; 32], Ungranted::Refuse).unwrap()
    }

    fn grant() -> TurnGrant {
        TurnGrant {
            identity: AgentIdentity {
                sub: Uuid::from_u128(1),
                email: "head@hilltop.example".into(),
                user_type: UserType::Staff,
                profile_id: Uuid::from_u128(2),
                school_id: Some(Uuid::from_u128(3)),
                campus_id: None,
            },
            scope: AgentCallScope::School {},
            turn_id: Uuid::from_u128(4),
            door: Door::Chat,
            expires_at_ms: clock::now_ms() + 60_000,
        }
    }

    fn admit(key: &GrantKey, grant: &TurnGrant, token: &str) -> Result<Caller, GrantError> {
        key.admit(grant.identity.clone(), grant.scope, Some(token))
    }

    #[test]
    fn a_minted_grant_admits_its_own_identity_only() {
        let (key, grant) = (key(), grant());
        let token = key.mint(&grant).unwrap();
        let caller = admit(&key, &grant, &token).unwrap();
        assert_eq!((caller.turn_id(), caller.door()), (Some(grant.turn_id), Door::Chat));
        let mut other = grant.clone();
        other.identity.school_id = Some(Uuid::from_u128(9));
        assert_eq!(admit(&key, &other, &token).unwrap_err(), GrantError::Mismatch);
        let mut other = grant;
        other.scope = AgentCallScope::Campus {
            campus_id: Uuid::from_u128(9),
        };
        assert_eq!(admit(&key, &other, &token).unwrap_err(), GrantError::Mismatch);
    }

    #[test]
    fn every_altered_byte_is_noticed() {
        let (key, grant) = (key(), grant());
        let token = key.mint(&grant).unwrap();
        for i in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[i] = if altered[i] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            // the last character of a base64 text may carry spare bits, which decoding refuses
            assert_eq!(
                admit(&key, &grant, &altered).unwrap_err(),
                GrantError::Forged,
                "byte {i}"
            );
        }
        assert_eq!(admit(&key, &grant, "").unwrap_err(), GrantError::Forged);
        assert_eq!(
            admit(&key, &grant, &"v1.".repeat(2000)).unwrap_err(),
            GrantError::Forged
        );
    }

    #[test]
    fn another_secret_and_a_passed_expiry_are_refused() {
        let (key, mut grant) = (key(), grant());
        let other = GrantKey::new(&[8; 32], Ungranted::Refuse).unwrap();
        assert_eq!(
            admit(&key, &grant, &other.mint(&grant).unwrap()).unwrap_err(),
            GrantError::Forged
        );
        grant.expires_at_ms = clock::now_ms() - 1;
        assert_eq!(
            admit(&key, &grant, &key.mint(&grant).unwrap()).unwrap_err(),
            GrantError::Expired
        );
    }

    #[test]
    fn without_a_grant_only_a_server_that_says_so_admits() {
        let grant = grant();
        assert_eq!(
            key().admit(grant.identity.clone(), grant.scope, None).unwrap_err(),
            GrantError::Missing
        );
        let open = GrantKey::new(&[7; 32], Ungranted::Admit).unwrap();
        assert_eq!(
            open.admit(grant.identity.clone(), grant.scope, None).unwrap().door(),
            Door::Peer
        );
        // a bad grant is worse than none
        assert_eq!(admit(&open, &grant, "v1.x.y").unwrap_err(), GrantError::Forged);
    }

    #[test]
    fn a_key_belongs_to_its_turn() {
        let (key, grant) = (key(), grant());
        let caller = admit(&key, &grant, &key.mint(&grant).unwrap()).unwrap();
        assert!(own_key(&caller, &format!("{}:call_1", grant.turn_id)).is_ok());
        for foreign in [
            format!("{}:call_1", Uuid::nil()),
            grant.turn_id.to_string(),
            format!("{}x:1", grant.turn_id),
        ] {
            assert!(own_key(&caller, &foreign).is_err(), "{foreign}");
        }
    }

    #[test]
    fn a_short_secret_is_no_key() {
        assert!(GrantKey::new(&[7; MIN_SECRET_BYTES - 1], Ungranted::Refuse).is_none());
    }

    #[test]
    fn debug_shows_no_secret() {
        assert_eq!(format!("{:?}", key()), "GrantKey { ungranted: Refuse, .. }");
    }
}
