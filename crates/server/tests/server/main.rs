//! A server in this process and its clients. One program, because linking each file's takes longer than its tests.

#![allow(clippy::disallowed_methods, reason = "tests by real time and files")]

mod access;
mod authentication;
mod connections;
mod copy_fuzz;
mod early;
mod encrypted;
mod interruption;
mod running;
mod storage;
mod tls;
mod unix_socket;
mod unread_answers;
