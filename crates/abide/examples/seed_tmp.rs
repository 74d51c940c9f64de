#[path = "../tests/cli/home.rs"]
mod home;
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    if std::env::args().nth(2).as_deref() == Some("hold") {
        let _l = abide_ledger::Ledger::open(std::path::Path::new(&dir), Default::default()).unwrap();
        println!("held");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    for (id, s) in home::seed(std::path::Path::new(&dir)) { println!("{id} {} {}", s.seq, s.status()); }
}
