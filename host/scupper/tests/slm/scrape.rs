//! Reads what a driver serves at its metrics address.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::driver::Driver;

/// The address of the metrics; it was started with any free port.
pub(crate) fn address(driver: &Driver) -> String {
    let log = driver.log();
    let line = log
        .lines()
        .find(|line| line.contains("metrics are served"))
        .unwrap();
    line.rsplit_once("address=").unwrap().1.trim().to_owned()
}

pub(crate) fn scrape(driver: &Driver, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address(driver)).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: driver\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
