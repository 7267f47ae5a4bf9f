//! The program `melba`, as its users call it. One program of tests, because linking each file's takes longer than its tests.

#![allow(clippy::disallowed_methods, reason = "tests by real time and files")]

mod address_space;
mod advise;
mod authentication;
mod background_work;
mod broken_pipe;
mod check;
mod cold;
mod configuration;
mod document_space;
mod kept;
mod lab;
mod memory;
mod open_files;
mod parallel;
mod permissions;
mod publications;
mod salvage;
mod server_log;
mod serving;
mod shell;
mod tls;
mod traces;
mod unix_socket;
