//! Privileges: GRANT and REVOKE, default privileges.

pub mod acl;
pub mod defaults;
pub mod grant;
pub mod granted;
