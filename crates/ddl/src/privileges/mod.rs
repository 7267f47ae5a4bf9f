//! Privileges: GRANT and REVOKE, default privileges, policies for rows.

pub mod acl;
pub mod defaults;
pub mod grant;
pub mod granted;
pub mod policy;
