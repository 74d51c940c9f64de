//! The CPU that the daemon takes for a turn whose model answers at once: against a bare call to that model, and with a full
//! context window against a first turn. And the time from the provider's first words to a listener.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Client, Daemon, print};

/// How often all of it is measured.
const RUNS: usize = 10;
/// Agents that think at the same time.
const AGENTS: usize = 32;
/// Turns of one agent: a conversation that has begun.
const TURNS: usize = 10;
/// Turns of one agent alone, for how soon its words are heard.
const LISTENED: usize = 60;
const PIECES: usize = 20;
/// Bare calls of a run.
const CALLS: usize = 400;
/// Agents with a long conversation.
const OLD: usize = 8;
/// Turns that each of them had before.
const EARLIER: usize = 1_200;
/// Turns of each that are measured in a run. All runs together go from one summary to the next.
const LATER: usize = 10;

/// What the provider saw: when it sent its first words, how often, and what it was asked last.
#[derive(Default)]
struct Seen {
    spoke: Vec<Instant>,
    answers: usize,
    asked: Vec<u8>,
}

pub fn overhead() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let url = serve(Arc::clone(&seen));
    let home = tempfile::tempdir().unwrap();
    let config = format!("[providers.bench]\nkind = \"openai-chat\"\nbase_url = \"{url}\"\n");
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let daemon = Daemon::start(home.path());
    let crowds: Vec<Crowd> =
        (0..RUNS * 2).map(|number| Crowd::waiting(&daemon, &format!("thinker-{number}"), AGENTS, TURNS)).collect();
    // By turns: on a machine that others use, a bare call was seen to take 60 us in one run and 140 in the next. And
    // added up: the system counts a process's time in hundredths of a second, which is 30 us for each turn of a crowd.
    let (mut unheard, mut heard, mut bare) = (Taken::default(), Taken::default(), Taken::default());
    let mut asked = Vec::new();
    for pair in crowds.chunks(2) {
        unheard.add(AGENTS * TURNS, pair[0].think(&daemon, &seen));
        asked = seen.lock().unwrap().asked.clone();
        bare.add(CALLS, call(&url, &asked));
        let mut events = Events::of(&daemon, "/v1/events/stream");
        let listener = std::thread::spawn(move || (0..AGENTS * TURNS).filter(|_| events.turn().is_some()).count());
        heard.add(AGENTS * TURNS, pair[1].think(&daemon, &seen));
        assert_ne!(listener.join().unwrap(), 0, "words were heard");
    }
    let mut late = one_alone(&daemon, &seen);
    late.sort_by(f64::total_cmp);
    let (p50, p99) = (late[late.len() / 2], late[late.len() * 99 / 100]);
    let (value, baseline, followed) = (unheard.each(), bare.each(), heard.each());
    let bytes = asked.len();
    let unit = format!(
        "us CPU per turn, requests of {bytes} bytes; first words {p50:.0} us (p50), {p99:.0} us (p99) after the provider's"
    );
    print("models.overhead", value, &unit, baseline, value / baseline, "<= 3.5");
    let unit = "us CPU per turn while a client follows all events";
    print("models.overhead.followed", followed, unit, baseline, followed / baseline, "<= 4.5");
}

/// Turns of agents with a full context window, and first turns, by turns.
pub fn history() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let url = serve(Arc::clone(&seen));
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "[providers.bench]\nkind = \"openai-chat\"\nbase_url = \"{url}\"\n\
         [models.\"bench/quick\"]\nwindow_tokens = 36000\nmax_output_tokens = 4000\ncontext_tokens = 32000\n"
    );
    std::fs::write(home.path().join("config.toml"), config).unwrap();
    let daemon = Daemon::start(home.path());
    let old = Crowd::waiting(&daemon, "old", OLD, EARLIER);
    old.think(&daemon, &seen);
    let (mut first, mut later, mut bytes) = (Taken::default(), Taken::default(), 0);
    for run in 0..RUNS {
        later.add(OLD * LATER, spoken_to(&daemon, &seen, &[&old; LATER]));
        bytes += seen.lock().unwrap().asked.len();
        let new: Vec<Crowd> =
            (0..LATER).map(|number| Crowd::waiting(&daemon, &format!("new-{run}-{number}"), OLD, 0)).collect();
        new.iter().for_each(|crowd| crowd.start(&daemon));
        settled_cpu_time(&daemon);
        first.add(OLD * LATER, spoken_to(&daemon, &seen, &new.iter().collect::<Vec<_>>()));
    }
    let (value, baseline, bytes) = (later.each(), first.each(), bytes / RUNS);
    let unit = format!("us CPU per turn after {EARLIER} others, requests of {bytes} bytes, baseline a first turn");
    print("models.history", value, &unit, baseline, value / baseline, "<= 1.5");
}

/// CPU that the daemon takes for one message to each of a crowd, and then to each of the next.
fn spoken_to(daemon: &Daemon, seen: &Mutex<Seen>, crowds: &[&Crowd]) -> Duration {
    let mut client = Client::connect(&daemon.address());
    let before = daemon.cpu_time();
    for crowd in crowds {
        let answers = seen.lock().unwrap().answers;
        crowd.names.iter().for_each(|name| say(&mut client, daemon, name));
        while seen.lock().unwrap().answers < answers + crowd.names.len() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    settled_cpu_time(daemon) - before
}

/// Once all is recorded and quiet.
fn settled_cpu_time(daemon: &Daemon) -> Duration {
    loop {
        let before = daemon.cpu_time();
        std::thread::sleep(Duration::from_millis(50));
        if daemon.cpu_time() == before {
            return before;
        }
    }
}

/// CPU that something took, and how often.
#[derive(Default)]
struct Taken {
    times: usize,
    took: Duration,
}

impl Taken {
    fn add(&mut self, times: usize, took: Duration) {
        (self.times, self.took) = (self.times + times, self.took + took);
    }

    /// In microseconds.
    fn each(&self) -> f64 {
        self.took.as_secs_f64() * 1e6 / self.times as f64
    }
}

/// Agents that have been told what to think about, and wait to begin.
struct Crowd {
    names: Vec<String>,
    /// Messages that wait for each.
    turns: usize,
}

impl Crowd {
    fn waiting(daemon: &Daemon, name: &str, agents: usize, turns: usize) -> Crowd {
        let mut client = Client::connect(&daemon.address());
        let names: Vec<String> = (0..agents).map(|member| format!("{name}-{member}")).collect();
        for name in &names {
            let body = format!(r#"{{"id":"{name}","model":"bench/quick","start":false}}"#);
            assert_eq!(client.post("/v1/agents", &daemon.token, &body), 201);
            for _ in 0..turns {
                say(&mut client, daemon, name);
            }
        }
        Crowd { names, turns }
    }

    /// CPU that the daemon takes for all their turns.
    fn think(&self, daemon: &Daemon, seen: &Mutex<Seen>) -> Duration {
        let (before, answers) = (daemon.cpu_time(), seen.lock().unwrap().answers);
        self.start(daemon);
        while seen.lock().unwrap().answers < answers + self.names.len() * self.turns {
            std::thread::sleep(Duration::from_millis(1));
        }
        settled_cpu_time(daemon) - before
    }

    fn start(&self, daemon: &Daemon) {
        let mut client = Client::connect(&daemon.address());
        for name in &self.names {
            assert_eq!(client.post(&format!("/v1/agents/{name}/start"), &daemon.token, "{}"), 200);
        }
    }
}

/// How long the first words of each turn took from the provider to a listener, in microseconds.
fn one_alone(daemon: &Daemon, seen: &Mutex<Seen>) -> Vec<f64> {
    let mut client = Client::connect(&daemon.address());
    assert_eq!(client.post("/v1/agents", &daemon.token, r#"{"id":"alone","model":"bench/quick"}"#), 201);
    let mut events = Events::of(daemon, "/v1/agents/alone/events/stream");
    let turn = |_| {
        seen.lock().unwrap().spoke.clear();
        say(&mut client, daemon, "alone");
        let heard = events.turn().expect("words before the end");
        heard.duration_since(seen.lock().unwrap().spoke[0]).as_secs_f64() * 1e6
    };
    (0..LISTENED).map(turn).collect()
}

fn say(client: &mut Client, daemon: &Daemon, name: &str) {
    let path = format!("/v1/agents/{name}/messages");
    assert_eq!(client.post(&path, &daemon.token, r#"{"text":"Please look at the build."}"#), 202);
}

impl Daemon {
    /// Of the whole process, in user and system mode.
    fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        // Linux tells it in hundredths of a second.
        Duration::from_millis(ticks * 10)
    }
}

/// The agent's events as they come.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(daemon: &Daemon, path: &str) -> Events {
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        let token = &daemon.token;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut events = Events(BufReader::new(stream));
        while events.line() != "\r\n" {}
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
        line
    }

    /// Comes back when a turn has ended, and says when the first words since the last one came.
    fn turn(&mut self) -> Option<Instant> {
        let mut heard = None;
        loop {
            let line = self.line();
            if line.contains("text.delta") {
                heard.get_or_insert_with(Instant::now);
            }
            if line.starts_with("event: turn.terminal") || line.starts_with("event:turn.terminal") {
                return heard;
            }
        }
    }
}

/// Calls with the same bytes and nothing else, one after the other, in CPU of their thread.
fn call(url: &str, body: &[u8]) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{url}/chat/completions");
    let call = async || {
        let request = client.post(&url).header("content-type", "application/json").body(body.to_vec());
        let mut response = request.send().await.unwrap();
        while response.chunk().await.unwrap().is_some() {}
    };
    runtime.block_on(call());
    let before = thread_time();
    runtime.block_on(async {
        for _ in 0..CALLS {
            call().await;
        }
    });
    thread_time() - before
}

fn thread_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
}

/// Answers every request at once, a few words at a time. It ends with the process.
fn serve(seen: Arc<Mutex<Seen>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, seen) = (stream.unwrap(), Arc::clone(&seen));
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                while let Some(body) = asked(&stream) {
                    seen.lock().unwrap().asked = body;
                    if !answer(&stream, &seen) {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn answer(mut stream: &TcpStream, seen: &Mutex<Seen>) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let piece = r#"{"choices":[{"index":0,"delta":{"content":"several words "}}]}"#;
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":40}}"#;
    let mut rest = String::new();
    for data in std::iter::repeat_n(piece, PIECES - 1).chain([end, "[DONE]"]) {
        rest.push_str(&chunk(data));
    }
    let mut noted = seen.lock().unwrap();
    noted.spoke.push(Instant::now());
    noted.answers += 1;
    drop(noted);
    stream.write_all(format!("{head}{}", chunk(piece)).as_bytes()).is_ok()
        && stream.write_all(format!("{rest}0\r\n\r\n").as_bytes()).is_ok()
}

fn chunk(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

/// The body of the next request on a connection.
fn asked(stream: &TcpStream) -> Option<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}
